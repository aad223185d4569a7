package cache

import (
	"bufio"
	"bytes"
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

// ignoredFields are the header fields that change no answer. Accept-Encoding is one, because an
// answer is stored without an encoding.
var ignoredFields = []string{
	"Accept-Encoding", "Accept-Language", "Baggage", "Cache-Control", "Cdn-Loop", "Connection", "Content-Length", "Date", "Dnt", "Forwarded",
	"Idempotency-Key", "Keep-Alive", "Pragma", "Priority", "Request-Id", "Te", "Traceparent", "Tracestate", "True-Client-Ip",
	"User-Agent", "Via", "X-Amzn-Trace-Id", "X-Client-Request-Id", "X-Request-Id",
	"Cf-Connecting-Ip", "Cf-Ew-Via", "Cf-Ipcountry", "Cf-Ray", "Cf-Visitor",
	"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Forwarded-Server",
}

// ignoredPrefixes begin the names of header fields that change no answer: of browsers, and of OpenAI's
// and Anthropic's libraries, which count their retries. Others of proxies may say who calls, such as
// Cf-Access-Client-Id and X-Forwarded-User.
var ignoredPrefixes = []string{"Sec-", "X-B3-", "X-Stainless-"}

func isIgnored(name string) bool {
	return slices.Contains(ignoredFields, name) || slices.ContainsFunc(ignoredPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// key returns what equal requests have in common. refusal must not refuse the request.
func (c *Cache) key(q *Request, o *Options) (k Key) {
	h := c.digests.Get().(*digest)
	defer c.digests.Put(h)
	h.sum.Reset()
	h.Reset(h.sum)
	h.text("request 2", q.Org, o.Seed, q.Method, q.Path, q.Query, string(q.Dialect))
	h.list(q.Target)
	h.list(o.Ignore)
	h.header(q.Header)
	members := h.members[:0]
	for i := range q.Body.Members {
		members = append(members, &q.Body.Members[i])
	}
	h.members = members
	slices.SortFunc(members, func(a, b *plugins.Member) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range members {
		if slices.Contains(o.Ignore, m.Name) {
			continue
		}
		h.text(m.Name)
		h.compact(q.Body.Data[m.Value.Index:][:len(m.Value.Raw)])
	}
	clear(members)
	_ = h.Flush() // a hash takes everything
	h.sum.Sum(k[:0])
	return k
}

// digest hashes texts so that no two lists of texts have the same bytes. It keeps its memory from
// one request to the next.
type digest struct {
	*bufio.Writer // into sum: a long value goes there by itself
	sum           hash.Hash
	names         []string // of header fields
	members       []*plugins.Member
}

func newDigest(secret []byte) *digest {
	return &digest{Writer: bufio.NewWriterSize(nil, 512), sum: hmac.New(sha256.New, secret)}
}

func (h *digest) length(n int) {
	_, _ = h.Write(binary.AppendUvarint(h.AvailableBuffer(), uint64(n)))
}

func (h *digest) text(texts ...string) {
	for _, t := range texts {
		h.length(len(t))
		_, _ = h.WriteString(t)
	}
}

func (h *digest) list(texts []string) {
	h.length(len(texts))
	h.text(texts...)
}

func (h *digest) header(header http.Header) {
	names := h.names[:0]
	for name := range header {
		if !isIgnored(name) {
			names = append(names, name)
		}
	}
	h.names = names
	slices.Sort(names)
	h.list(names)
	for _, name := range names {
		h.list(header[name])
	}
	clear(names)
}

// compact hashes valid JSON without the white space between its parts, and with a zero byte, which
// JSON has nowhere, at its end. The order of fields stays: a model may read a schema in it.
func (h *digest) compact(raw []byte) {
	from := 0 // what comes before is hashed
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = stringEnd(raw, i+1)
		case ' ', '\t', '\r', '\n':
			_, _ = h.Write(raw[from:i])
			from = i + 1
		}
	}
	_, _ = h.Write(raw[from:])
	_ = h.WriteByte(0)
}

// stringEnd returns the index of the quote that ends a string of valid JSON. i lies within the string.
func stringEnd(raw []byte, i int) int {
	for {
		quote := i + bytes.IndexByte(raw[i:], '"')
		escapes := 0
		for raw[quote-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return quote
		}
		i = quote + 1
	}
}
