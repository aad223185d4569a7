package cache

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// Key is what equal requests of an organisation have in common: a keyed hash, from which nobody
// reads a prompt.
type Key [sha256.Size]byte

// aside are the header fields that change no answer. The encoding is that of the way: an answer
// is stored without.
var aside = []string{
	"Accept-Encoding", "Accept-Language", "Baggage", "Cache-Control", "Cdn-Loop", "Connection", "Content-Length", "Date", "Dnt", "Forwarded",
	"Idempotency-Key", "Keep-Alive", "Pragma", "Priority", "Request-Id", "Te", "Traceparent", "Tracestate", "True-Client-Ip",
	"User-Agent", "Via", "X-Amzn-Trace-Id", "X-Client-Request-Id", "X-Request-Id",
	"Cf-Connecting-Ip", "Cf-Ew-Via", "Cf-Ipcountry", "Cf-Ray", "Cf-Visitor",
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Forwarded-Server",
}

// asidePrefixes begin the names of header fields that change no answer: of browsers, and of OpenAI's
// and Anthropic's libraries, which count their retries. Others of proxies may say who calls, such as
// Cf-Access-Client-Id and X-Forwarded-User.
var asidePrefixes = []string{"Sec-", "X-B3-", "X-Stainless-"}

func isAside(name string) bool {
	return slices.Contains(aside, name) || slices.ContainsFunc(asidePrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// key returns what equal requests have in common. Refusal must not refuse the request.
func (c *Cache) key(q *Request, o *Options) (k Key) {
	h := digest{Hash: hmac.New(sha256.New, c.secret)}
	h.text("request 2", q.Org, o.Seed, q.Method, q.Path, q.Query, string(q.Dialect))
	h.list(q.Target)
	h.list(o.Ignore)
	h.header(q.Header)
	members := slices.Clone(q.Body.Members)
	slices.SortFunc(members, func(a, b plugins.Member) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range members {
		if slices.Contains(o.Ignore, m.Name) {
			continue
		}
		h.text(m.Name)
		h.compact(m.Value.Raw)
	}
	h.Sum(k[:0])
	return k
}

// digest hashes texts so that no two lists of texts have the same bytes.
type digest struct {
	hash.Hash
	buffer []byte
}

func (h *digest) length(n int) {
	var b [binary.MaxVarintLen64]byte
	h.Write(b[:binary.PutUvarint(b[:], uint64(n))])
}

func (h *digest) text(texts ...string) {
	for _, t := range texts {
		h.length(len(t))
		h.Write([]byte(t))
	}
}

func (h *digest) list(texts []string) {
	h.length(len(texts))
	h.text(texts...)
}

func (h *digest) header(header http.Header) {
	names := make([]string, 0, len(header))
	for name := range header {
		if !isAside(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	h.list(names)
	for _, name := range names {
		h.list(header[name])
	}
}

// compact hashes a JSON value without the white space between its parts. The order of fields
// stays: a model may read a schema in it.
func (h *digest) compact(raw string) {
	b := h.buffer[:0]
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case ' ', '\t', '\r', '\n':
		case '"':
			start := i
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			b = append(b, raw[start:i+1]...)
		default:
			b = append(b, raw[i])
		}
	}
	h.buffer = b
	h.length(len(b))
	h.Write(b)
}
