package intake

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/plugins"
)

// memory has room for two bodies of a MiB.
func memory() *admission.Memory { return admission.NewMemory(2 * 2 * copies << 20) }

// free returns whether there is room for a body of so many bytes, without waiting.
func free(t *testing.T, m *admission.Memory, n int64) bool {
	t.Helper()
	now, cancel := context.WithCancel(t.Context())
	cancel()
	held, err := m.Of("other").Hold(now, copies*n)
	held.Release()
	return err == nil
}

func zipped(t *testing.T, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A body holds the memory that it takes, however it comes, until it is released.
func TestBodiesHoldMemory(t *testing.T) {
	body := bytes.Repeat([]byte("a"), 1<<20)
	for name, send := range map[string]func(r *http.Request){
		"announced": func(*http.Request) {},
		"chunked":   func(r *http.Request) { r.ContentLength = -1 },
		"encoded": func(r *http.Request) {
			wire := zipped(t, body)
			r.Header.Set("Content-Encoding", "gzip")
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(wire)), int64(len(wire))
		},
		"given": func(r *http.Request) {
			b := Body{Bytes: body}
			held, err := r.Context().Value(memoryKey{}).(*admission.Memory).Hold(r.Context(), 1)
			if b.reservation = held; err != nil {
				t.Fatal(err)
			}
			if _, err := b.Give(r); err != nil {
				t.Fatal(err)
			}
		},
	} {
		m := memory()
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		r = r.WithContext(context.WithValue(t.Context(), memoryKey{}, m))
		send(r)
		b, err := Reader{m, 4 << 20}.Read(httptest.NewRecorder(), r)
		if err != nil || !bytes.Equal(b.Bytes, body) {
			t.Fatalf("%s: %d bytes, %v", name, len(b.Bytes), err)
		}
		if !free(t, m, 1<<20) || free(t, m, 1<<20+1) {
			t.Errorf("%s: a body of a MiB does not hold as much", name)
		}
		b.Release()
		b.Release()
		if !free(t, m, 2<<20) {
			t.Errorf("%s: what a body held is not free", name)
		}
	}
}

type memoryKey struct{}

// slow is a body of which each read looks at the memory.
type slow struct {
	left int
	look func()
}

func (s *slow) Read(p []byte) (int, error) {
	s.look()
	n := min(len(p), s.left)
	if s.left -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (*slow) Close() error { return nil }

// Memory is held before the bytes come, also when nobody has told how many will.
func TestMemoryComesBeforeTheBytes(t *testing.T) {
	m := memory()
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	body := &slow{left: 1 << 20}
	body.look = func() {
		if came := int64(1<<20 - body.left); free(t, m, 2<<20-came+1) {
			t.Errorf("%d bytes have come, and are not held", came)
		}
	}
	r.Body, r.ContentLength = body, -1
	b, err := Reader{m, 2 << 20}.Read(httptest.NewRecorder(), r)
	if err != nil || len(b.Bytes) != 1<<20 {
		t.Fatalf("%d bytes, %v", len(b.Bytes), err)
	}
	b.Release()
}

func TestBodiesAreBounded(t *testing.T) {
	const most = 1 << 20
	for name, c := range map[string]struct {
		body     io.Reader
		encoding string
		status   int
	}{
		"longest":          {bytes.NewReader(make([]byte, most)), "", 0},
		"too long":         {bytes.NewReader(make([]byte, most+1)), "", 413},
		"too long chunked": {io.MultiReader(bytes.NewReader(make([]byte, most+1))), "", 413},
		"a bomb":           {bytes.NewReader(zipped(t, make([]byte, most+1))), "gzip", 413},
		"a bomb in a bomb": {bytes.NewReader(zipped(t, zipped(t, make([]byte, 100*most)))), "gzip, gzip", 413},
		"no gzip":          {strings.NewReader("hello"), "gzip", 400},
		"unknown":          {strings.NewReader("hello"), "rot13", 415},
		"bounded by Caddy": {http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("hello")), 3), "", 413},
	} {
		m := admission.NewMemory(0)
		r := httptest.NewRequest(http.MethodPost, "/", c.body)
		if c.encoding != "" {
			r.Header.Set("Content-Encoding", c.encoding)
		}
		b, err := Reader{m, most}.Read(httptest.NewRecorder(), r)
		b.Release()
		refused, _ := errors.AsType[*plugins.Error](err)
		if (refused == nil) != (c.status == 0) || refused != nil && refused.Status != c.status {
			t.Errorf("%s: %d bytes, %v", name, len(b.Bytes), err)
		}
	}
}

// What is read ahead passes on unchanged, and waits for nobody.
func TestReadAhead(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		most    int64
		body    io.Reader
		takes   int64
		refused int
		err     error
	}{
		"whole":    {4 << 20, strings.NewReader("hello"), 0, 0, nil},
		"too long": {3, strings.NewReader("hello"), 0, 413, nil},
		"no room":  {4 << 20, strings.NewReader("hello"), 2 << 20, 503, nil},
		"broken":   {4 << 20, io.MultiReader(strings.NewReader("hello"), &failing{broken}), 0, 0, broken},
	} {
		m := memory()
		other, _ := m.Hold(t.Context(), copies*c.takes)
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Body, r.ContentLength = io.NopCloser(c.body), -1
		b, refused, err := Reader{m, c.most}.ReadAhead(httptest.NewRecorder(), r)
		if (refused == nil) != (c.refused == 0) || refused != nil && refused.Status != c.refused || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", name, refused, err)
		}
		passed, err := io.ReadAll(r.Body)
		if string(passed) != "hello" || !errors.Is(err, c.err) {
			t.Errorf("%s: %q passes, %v", name, passed, err)
		}
		b.Release()
		other.Release()
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// Values take memory beside their bytes.
func TestValuesHoldMemory(t *testing.T) {
	m := memory()
	read := func(body string) Body {
		b, err := Reader{m, 4 << 20}.Read(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := read("[" + strings.Repeat("0,", 20_000) + "0]")
	if err := b.CheckJSON(t.Context(), b.Bytes); err != nil || free(t, m, 1<<20) {
		t.Errorf("%v: 20,000 values take no memory", err)
	}
	b.Release()
	for name, body := range map[string]string{
		"values": strings.Repeat("[],", maxValues), "depth": strings.Repeat("[", maxDepth+1),
	} {
		b := read(body)
		if refused, ok := errors.AsType[*plugins.Error](b.CheckJSON(t.Context(), b.Bytes)); !ok || refused.Status != 413 {
			t.Errorf("%s: %v", name, refused)
		}
		b.Release()
	}
}

// Messages of protobuf are counted before they are parsed.
func TestMessagesAreCounted(t *testing.T) {
	m := new(collector.ExportTraceServiceRequest).ProtoReflect().Descriptor()
	for body, want := range map[string]int{
		"": 1, "\x0a\x00": 2, "\x0a\x04\x12\x02\x12\x00": 4, "\x0a\x02\x1a\x00": 2, "\x08\x01": 1, "\x0a": -1, "\x0a\x01\x12": -1,
	} {
		count, _, ok := messages([]byte(body), m, maxDepth)
		if ok != (want > 0) || ok && count != want {
			t.Errorf("%x has %d messages, %v", body, count, ok)
		}
	}
	deep := []byte{0x12, 0}
	for range 20 {
		deep = append([]byte{0x2a, byte(len(deep))}, deep...)
	}
	if _, depth, _ := messages(deep, m, 5); depth > 6 {
		t.Errorf("%d levels were looked at", depth)
	}
}

// frame is a frame of a client.
func frame(op ws.OpCode, fin bool, payload string) []byte {
	f := ws.MaskFrame(ws.NewFrame(op, fin, []byte(payload)))
	return ws.MustCompileFrame(f)
}

// A message holds memory while its fragments come, and what cannot be taken closes the
// socket with the code that says why.
func TestSocket(t *testing.T) {
	long := strings.Repeat("a", 700)
	for name, c := range map[string]struct {
		frames [][]byte
		text   string
		code   ws.StatusCode
	}{
		"whole":     {[][]byte{frame(ws.OpText, true, "hello")}, "hello", 0},
		"empty":     {[][]byte{frame(ws.OpText, true, "")}, "", 0},
		"fragments": {[][]byte{frame(ws.OpText, false, "hel"), frame(ws.OpPing, true, ""), frame(ws.OpContinuation, true, "lo")}, "hello", 0},
		"too long":  {[][]byte{frame(ws.OpText, true, long+long)}, "", ws.StatusMessageTooBig},
		"too many":  {[][]byte{frame(ws.OpText, false, long), frame(ws.OpContinuation, true, long)}, "", ws.StatusMessageTooBig},
		"binary":    {[][]byte{frame(ws.OpBinary, true, "hello")}, "", ws.StatusUnsupportedData},
		"no UTF-8":  {[][]byte{frame(ws.OpText, true, "\xff")}, "", ws.StatusInvalidFramePayloadData},
		"unmasked":  {[][]byte{ws.MustCompileFrame(ws.NewTextFrame([]byte("hello")))}, "", ws.StatusProtocolError},
	} {
		server, client := net.Pipe()
		in := io.MultiReader(bytes.NewReader(bytes.Join(c.frames, nil)), server)
		m := memory()
		b, err := Reader{m, 1000}.Socket(server, in, io.Discard).Next(t.Context())
		var closing *ClosingError
		if errors.As(err, &closing); closing == nil && (err != nil || c.code != 0 || string(b.Bytes) != c.text) || closing != nil && closing.Code != c.code {
			t.Errorf("%s: %q, %v", name, b.Bytes, err)
		}
		b.Release()
		if !free(t, m, 2<<20) {
			t.Errorf("%s: memory is held that nobody has", name)
		}
		server.Close()
		client.Close()
	}
}

// Fragments of messages that never end are held: the message that finds no room closes
// its socket.
func TestUnfinishedMessagesHoldMemory(t *testing.T) {
	m := memory()
	server, client := net.Pipe()
	defer client.Close()
	defer server.Close()
	rest := &slow{look: func() {
		if free(t, m, 1<<20+1) {
			t.Error("a MiB of fragments is not held")
		}
	}}
	in := io.MultiReader(bytes.NewReader(frame(ws.OpText, false, strings.Repeat("a", 1<<20))), rest)
	if _, err := (Reader{m, 4 << 20}).Socket(server, in, io.Discard).Next(t.Context()); err == nil {
		t.Error("a message without an end is one")
	}
	if !free(t, m, 2<<20) {
		t.Error("a message that broke off holds memory")
	}
}

// dribble is a client that sends a byte each second, over a connection with a deadline.
type dribble struct {
	http.ResponseWriter
	left     int
	deadline time.Time
}

func (d *dribble) SetReadDeadline(t time.Time) error {
	d.deadline = t
	return nil
}

func (d *dribble) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Second)
	if !d.deadline.IsZero() && time.Now().After(d.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	d.left--
	return copy(p, "1"), nil
}

func (*dribble) Close() error { return nil }

// A body that does not come in time is a 408, of which the connection is closed, and its memory is
// free again; one that does leaves no deadline behind.
func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for bytes, status := range map[int]int{10: 0, 10_000: http.StatusRequestTimeout} {
			for _, announced := range []bool{true, false} {
				m := memory()
				d := &dribble{ResponseWriter: httptest.NewRecorder(), left: bytes}
				r := httptest.NewRequest(http.MethodPost, "/", d)
				if r.ContentLength = -1; announced {
					r.ContentLength = int64(bytes)
				}
				begun := time.Now()
				b, err := Reader{m, 1 << 20}.Read(d, r)
				b.Release()
				refused, _ := errors.AsType[*plugins.Error](err)
				if (refused != nil) != (status != 0) || refused != nil && refused.Status != status {
					t.Errorf("%d bytes: %v", bytes, err)
				}
				if closes := d.Header().Get("Connection") == "close"; closes != (status != 0) || d.deadline.IsZero() != (status == 0) {
					t.Errorf("%d bytes: the connection closes: %v, deadline %v", bytes, closes, d.deadline)
				}
				if took := time.Since(begun); took > patience+3*time.Second || !free(t, m, 2<<20) {
					t.Errorf("%d bytes take %v, and memory", bytes, took)
				}
				d.left = bytes
				_, ahead, _ := Reader{m, 1 << 20}.ReadAhead(d, r)
				if status == http.StatusRequestTimeout && (ahead == nil || ahead.Status != status) {
					t.Errorf("%d bytes ahead: %v", bytes, ahead)
				}
			}
		}
	})
}

// An announcement of a length takes no memory: what has come takes it, and growth times as much.
func TestAnnouncedBytesTakeNoMemory(t *testing.T) {
	const most = 4 << 20
	m := admission.NewMemory(2 * copies * most)
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	body := &slow{left: most}
	body.look = func() {
		came := int64(most - body.left)
		if holds := max(firstRead, trust*min(came/firstRead, 1), growth*came) + growth*firstRead; holds < most && !free(t, m, most-holds-most/4) {
			t.Errorf("%d bytes have come, and others cannot have the rest", came)
		}
	}
	r.Body, r.ContentLength = body, most
	b, err := Reader{m, most}.Read(httptest.NewRecorder(), r)
	if err != nil || len(b.Bytes) != most {
		t.Fatalf("%d bytes, %v", len(b.Bytes), err)
	}
	b.Release()
}
