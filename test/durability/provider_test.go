//go:build linux

package durability

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// provider answers calls the way they say it should.
type provider struct {
	*httptest.Server
	calls sync.Map // number -> *call
	last  atomic.Int64
}

func newProvider(t *testing.T) *provider {
	p := new(provider)
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.answer))
	// Idle connections would count as descriptors that Weir leaks.
	p.Config.SetKeepAlivesEnabled(false)
	p.Start()
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// call returns a call that the provider will know how to answer.
func (p *provider) call(d dialect) *call {
	c := &call{number: int(p.last.Add(1)), dialect: d, header: http.Header{}, reply: reply{pieces: 3}}
	c.prompt, c.text = fmt.Sprintf("question %d?", c.number), fmt.Sprintf("answer %d!", c.number)
	p.calls.Store(c.number, c)
	return c
}

func (p *provider) answer(w http.ResponseWriter, r *http.Request) {
	number, _ := strconv.Atoi(r.Header.Get("X-Call"))
	value, ok := p.calls.Load(number)
	if !ok {
		http.Error(w, "unknown call", http.StatusTeapot)
		return
	}
	c := value.(*call)
	for name := range r.Header {
		if strings.HasPrefix(name, "Service-") {
			c.leaked.Store(&name)
		}
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	c.answer(w)
}

// answering reports whether the provider has begun to answer all these calls.
func (p *provider) answering(calls []*call) bool {
	for _, c := range calls {
		if !c.begun.Load() {
			return false
		}
	}
	return true
}

// holding reports whether all these calls wait for their last piece.
func (p *provider) holding(calls []*call) bool {
	for _, c := range calls {
		if !c.holding.Load() {
			return false
		}
	}
	return true
}

// answer writes what the call wants, piece by piece.
func (c *call) answer(w http.ResponseWriter) {
	c.begun.Store(true)
	if c.silent {
		c.holding.Store(true)
		<-c.hold
	}
	pieces := c.answerPieces()
	w.Header().Set("Content-Type", c.contentType())
	if c.cookie != "" {
		w.Header().Set("Set-Cookie", "session="+c.cookie)
	}
	if c.encoding != "" {
		w.Header().Set("Content-Encoding", c.encoding)
	} else if c.sized {
		w.Header().Set("Content-Length", strconv.Itoa(len(strings.Join(pieces, ""))))
	}
	w.WriteHeader(c.answerStatus())
	encoder := encode(w, c.encoding)
	for i, piece := range pieces {
		if c.cut && i == len(pieces)/2 {
			panic(http.ErrAbortHandler)
		}
		if i == len(pieces)-1 && c.hold != nil {
			c.holding.Store(true)
			<-c.hold
		}
		if _, err := io.WriteString(encoder, piece); err != nil {
			return
		}
		encoder.Flush()
		_ = http.NewResponseController(w).Flush()
		time.Sleep(c.pause)
	}
	time.Sleep(c.linger)
	encoder.Close()
}

// encodings are the Content-Encodings of calls.
var encodings = []string{"", "gzip", "zstd", "br"}

// encoder is a compressor of any kind.
type encoder interface {
	io.WriteCloser
	Flush() error
}

type identity struct{ io.Writer }

func (identity) Flush() error { return nil }
func (identity) Close() error { return nil }

func encode(w io.Writer, encoding string) encoder {
	switch encoding {
	case "gzip":
		return gzip.NewWriter(w)
	case "br":
		return brotli.NewWriter(w)
	case "zstd":
		e, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true)) // fails with options alone
		return e
	}
	return identity{w}
}

func decode(r io.Reader, encoding string) (io.ReadCloser, error) {
	switch encoding {
	case "gzip":
		return gzip.NewReader(r)
	case "br":
		return io.NopCloser(brotli.NewReader(r)), nil
	case "zstd":
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil // holds megabytes until it is closed
	}
	return io.NopCloser(r), nil
}
