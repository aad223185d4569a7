package capture

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

func TestCopyIsBounded(t *testing.T) {
	for _, c := range []struct {
		max       int64
		expected  int64
		pieces    []int
		kept      int
		truncated bool
	}{
		{0, 0, []int{10}, 0, false},
		{100, 0, nil, 0, false},
		{100, 0, []int{60, 40}, 100, false},
		{100, 0, []int{60, 41}, 100, true},
		{100, 1 << 40, []int{100, 1}, 100, true},
		{1 << 20, 100, []int{3000, 100_000, 900_000}, 1_003_000, false},
		{20 << 20, -1, []int{9 << 20, 9 << 20}, 18 << 20, false},
	} {
		var copy Copy
		copy.Keep(c.max, c.expected)
		var want []byte
		for i, n := range c.pieces {
			p := bytes.Repeat([]byte{byte('a' + i)}, n)
			want = append(want, p...)
			copy.Write(p)
			clear(p) // it must not be kept
		}
		if got := copy.Bytes(); len(got) != c.kept || !bytes.Equal(got, want[:c.kept]) || copy.Truncated() != c.truncated {
			t.Errorf("%+v: kept %d, truncated %v", c, len(got), copy.Truncated())
		}
		copy.Free()
	}
	if n := inUse.Load(); n != 0 {
		t.Errorf("%d bytes are in use after all copies were freed", n)
	}
}

// A large body whose length was announced is copied once on its way, and takes no memory
// before it has come.
func TestCopyGrowsAsAnnounced(t *testing.T) {
	for _, c := range []struct{ max, expected, first, then int64 }{
		{8 << 20, 300 << 10, 64 << 10, 384 << 10},
		{8 << 20, 1 << 40, 64 << 10, 384 << 10}, // four times the 96 KiB that have come
		{200 << 10, 1 << 40, 64 << 10, 256 << 10},
		{8 << 20, 0, 64 << 10, 96 << 10},
	} {
		var copy Copy
		copy.Keep(c.max, c.expected)
		copy.Write(make([]byte, 64<<10))
		if copy.cap() != c.first {
			t.Errorf("%+v: %d bytes at first", c, copy.cap())
		}
		copy.Write(make([]byte, 32<<10))
		if copy.cap() != c.then {
			t.Errorf("%+v: %d bytes then", c, copy.cap())
		}
		copy.Free()
	}
	inUse.Add(Memory() - 200<<10)
	defer inUse.Add(200<<10 - Memory())
	var copy Copy
	copy.Keep(8<<20, 8<<20)
	copy.Write(make([]byte, 150<<10))
	if copy.len() != 150<<10 || copy.Truncated() {
		t.Errorf("%d bytes were kept where there is memory for them, but not for what was announced", copy.len())
	}
	copy.Free()
}

// Bytes that were handed out stay while the copy grows and others come and go.
func TestLentBytesStay(t *testing.T) {
	var copy Copy
	copy.Keep(1<<20, 0)
	copy.Write([]byte("first"))
	lent := copy.Bytes()
	for range 100 {
		copy.Write(make([]byte, 1000))
		var other Copy
		other.Keep(1<<20, 0)
		other.Write(bytes.Repeat([]byte("x"), 2000))
		other.Free()
	}
	if string(lent) != "first" {
		t.Errorf("%q", lent)
	}
	copy.Free()
}

func TestMemoryIsBounded(t *testing.T) {
	const size, room = 1 << 20, 10
	others := Memory() - room*size
	inUse.Add(others)
	defer inUse.Add(-others)

	copies := make([]Copy, room+5)
	truncated := 0
	for i := range copies {
		copies[i].Keep(size, 0)
		copies[i].Write(make([]byte, size))
		if copies[i].Truncated() {
			truncated++
		}
		if n := inUse.Load(); n > Memory() {
			t.Fatalf("%d bytes in use", n)
		}
	}
	if truncated != 5 {
		t.Errorf("%d copies are truncated, want 5", truncated)
	}
	for i := range copies {
		copies[i].Free()
	}
	if n := inUse.Load(); n != others {
		t.Errorf("%d bytes are in use after all copies were freed", n-others)
	}
}

// A quiet stream costs little.
func TestSmallCopiesAreSmall(t *testing.T) {
	var copy Copy
	copy.Keep(8<<20, -1)
	copy.Write([]byte("data: {}\n\n"))
	if n := inUse.Load(); n > 4<<10 {
		t.Errorf("10 bytes take %d", n)
	}
	copy.Free()
}

type reader struct{ strings.Builder }

func (r *reader) Write(p []byte) { r.Builder.Write(p) }

func TestTap(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte("plain text"))
	z.Close()

	for _, c := range []struct {
		encoding, wire string
		max            int64
		read, kept     string
		truncated      bool
	}{
		{"", "plain text", 100, "plain text", "plain text", false},
		{"", "plain text", 0, "plain text", "", false},
		{"gzip", packed.String(), 100, "plain text", "plain text", false},
		{"gzip", packed.String(), 5, "plain text", "plain", true},
		{"gzip", packed.String(), 0, "plain text", "", false},
		{"gzip", "garbage", 100, "", "", true},
		{"x-own", "plain text", 100, "", "plain text", false},
	} {
		var tap Tap
		var r reader
		tap.Keep(c.max, 0)
		tap.Open(c.encoding, &r)
		for i := range len(c.wire) {
			tap.Write([]byte(c.wire[i : i+1]))
		}
		tap.Close()
		tap.Close()
		if r.String() != c.read || string(tap.Bytes()) != c.kept || tap.Truncated() != c.truncated {
			t.Errorf("%q of %d: read %q, kept %q, truncated %v", c.encoding, c.max, r.String(), tap.Bytes(), tap.Truncated())
		}
		tap.Free()
	}
}

// A transport may read a body after the handler has returned, when the server
// answers nothing else.
func TestBodyAfterDetach(t *testing.T) {
	b := Body{ReadCloser: io.NopCloser(strings.NewReader("abcdef"))}
	b.Look(func(tap *Tap, _ int64) { tap.Keep(100, 0) })
	io.ReadFull(&b, make([]byte, 3))
	b.Detach()
	rest, err := io.ReadAll(&b)
	b.Look(func(tap *Tap, received int64) {
		if len(rest) > 0 || !errors.Is(err, http.ErrBodyReadAfterClose) || received != 3 || tap.Bytes() != nil {
			t.Errorf("%q, %v, %d received, kept %q", rest, err, received, tap.Bytes())
		}
	})
}

// events notes what an observer is told, and when.
type events struct {
	client *httptest.ResponseRecorder
	writer Writer
	told   []string
}

func (e *events) Early(header http.Header) {
	e.told = append(e.told, fmt.Sprint("early ", header["Link"]))
}

func (e *events) Header(header http.Header, bodyless bool) {
	header.Set("X-Ours", "1")
	e.told = append(e.told, fmt.Sprint(e.writer.Status(), " ", bodyless))
}

func (e *events) Chunk(p []byte, last bool) {
	e.told = append(e.told, fmt.Sprintf("%s %v after %q", p, last, e.client.Body))
}

func TestObserverIsAheadOfTheClient(t *testing.T) {
	for _, c := range []struct {
		name, method string
		serve        func(w http.ResponseWriter)
		told         []string
		sent         int64
	}{
		{"length", "GET", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "4")
			w.WriteHeader(201)
			w.WriteHeader(500) // a second one is nothing
			io.WriteString(w, "ab")
			io.WriteString(w, "cd")
		}, []string{"201 false", `ab false after ""`, `cd true after "ab"`}, 4},
		{"implicit header, ReadFrom", "GET", func(w http.ResponseWriter) {
			io.Copy(w, strings.NewReader("abc"))
		}, []string{"200 false", `abc false after ""`}, 3},
		{"informational", "GET", func(w http.ResponseWriter) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(103)
			w.WriteHeader(200)
		}, []string{"early [</a>]", "200 false"}, 0},
		{"head", "HEAD", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "4")
			io.WriteString(w, "abcd")
		}, []string{"200 true"}, 0},
		{"no content", "GET", func(w http.ResponseWriter) { w.WriteHeader(204) }, []string{"204 true"}, 0},
		{"not modified", "GET", func(w http.ResponseWriter) { w.WriteHeader(304) }, []string{"304 true"}, 0},
		{"length 0", "GET", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(200)
		}, []string{"200 true"}, 0},
		{"flush", "GET", func(w http.ResponseWriter) {
			http.NewResponseController(w).Flush()
		}, []string{"200 false"}, 0},
		{"tunnel", "CONNECT", func(w http.ResponseWriter) {
			w.WriteHeader(200)
			io.WriteString(w, "frames")
		}, []string{"200 false"}, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &events{client: httptest.NewRecorder()}
			w := &e.writer
			w.Watch(e.client, c.method, e)
			c.serve(w)
			if fmt.Sprint(e.told) != fmt.Sprint(c.told) || w.Sent() != c.sent || w.Short() {
				t.Errorf("told %q, sent %d", e.told, w.Sent())
			}
			if e.client.Header().Get("X-Ours") == "" {
				t.Error("the observer's header is lost")
			}
		})
	}
}

type broken struct{ http.ResponseWriter }

func (broken) Write(p []byte) (int, error) { return 1, errBroken }

var errBroken = errors.New("broken")

func TestWriterAnswersAsTheOneBeneath(t *testing.T) {
	e := &events{client: httptest.NewRecorder()}
	var w Writer
	w.Watch(broken{e.client}, "GET", e)
	if n, err := w.Write([]byte("abc")); n != 1 || !errors.Is(err, errBroken) || !errors.Is(w.Err(), errBroken) || w.Sent() != 1 {
		t.Errorf("%d, %v; sent %d, %v", n, err, w.Sent(), w.Err())
	}
}

// hijackable hands out one end of a pipe, with early bytes in its reader.
type hijackable struct {
	http.ResponseWriter
	conn  net.Conn
	early string
}

func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r := bufio.NewReader(io.MultiReader(strings.NewReader(h.early), h.conn))
	if h.early != "" {
		r.Peek(len(h.early))
	}
	return h.conn, bufio.NewReadWriter(r, bufio.NewWriter(h.conn)), nil
}

func TestHijackedConnectionIsCounted(t *testing.T) {
	for _, early := range []string{"", "early"} {
		client, server := net.Pipe()
		var w Writer
		w.Watch(hijackable{httptest.NewRecorder(), server, early}, "GET", &events{client: httptest.NewRecorder()})
		conn, brw, err := http.NewResponseController(&w).Hijack()
		if err != nil {
			t.Fatal(err)
		}
		if n := brw.Reader.Buffered(); n != len(early) {
			t.Errorf("%d bytes are buffered, want %d", n, len(early))
		}
		go func() {
			io.WriteString(client, "later")
			io.Copy(io.Discard, client)
		}()
		got := make([]byte, len(early)+5)
		if _, err := io.ReadFull(brw, got); err != nil || string(got) != early+"later" {
			t.Errorf("read %q, %v", got, err)
		}
		io.WriteString(brw, "abc")
		brw.Flush()
		io.Copy(conn, strings.NewReader("defg"))
		if w.Received() != int64(len(got)) || w.Sent() != 7 || !w.Tunnel() {
			t.Errorf("%d received, %d sent, tunnel %v", w.Received(), w.Sent(), w.Tunnel())
		}
		if _, ok := conn.(closeWriter); ok {
			t.Error("a pipe has no halves to close")
		}
		conn.Close()
		client.Close()
	}
}

// Half of a TCP connection can be closed, and a tunnel relies on it.
func TestHijackedConnectionClosesByHalf(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var w Writer
	w.Watch(hijackable{httptest.NewRecorder(), server, ""}, "GET", &events{client: httptest.NewRecorder()})
	conn, _, err := w.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	half, ok := conn.(closeWriter)
	if !ok {
		t.Fatal("it does not")
	}
	half.CloseWrite()
	if b, err := io.ReadAll(client); len(b) > 0 || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

func TestSizeClassIsTheLeastThatFits(t *testing.T) {
	for n := int64(1); n <= classSize(classes-1); n += 97 {
		if c := sizeClass(n); classSize(c) < n || c > 0 && classSize(c-1) >= n {
			t.Fatalf("%d bytes get a buffer of %d", n, classSize(c))
		}
	}
}

// closing is a body that is closed after each read.
type closing struct{ io.Reader }

func (c *closing) Read(p []byte) (n int, err error) {
	n, err = c.Reader.Read(p)
	c.Reader = iotest.ErrReader(http.ErrBodyReadAfterClose)
	return n, err
}

// Who looks for more than there is learns of the end again, although the server has closed the body.
func TestBodyEndsOnce(t *testing.T) {
	for name, b := range map[string]*Body{
		"by its length": {ReadCloser: io.NopCloser(&closing{strings.NewReader("abc")}), Length: 3},
		"by its end":    {ReadCloser: io.NopCloser(&closing{iotest.DataErrReader(strings.NewReader("abc"))})},
	} {
		p := make([]byte, 8)
		if n, err := b.Read(p); string(p[:n]) != "abc" || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %q, %v", name, p[:n], err)
		}
		for range 2 {
			if n, err := b.Read(p); n > 0 || !errors.Is(err, io.EOF) {
				t.Errorf("%s: %d, %v after the end", name, n, err)
			}
			b.Detach()
		}
	}
}

// A body is read again from its first byte, whatever is kept of it; an earlier reader takes
// nothing of the rest.
func TestBodyAgain(t *testing.T) {
	for name, c := range map[string]struct {
		tap, wire int64
		ok        bool
	}{
		"kept": {100, 100, true}, "only on the wire": {0, 100, true}, "too long": {0, 2, false}, "kept in part": {2, 2, false},
	} {
		b := Body{ReadCloser: io.NopCloser(strings.NewReader("abcdef"))}
		b.Look(func(t *Tap, _ int64) { t.Keep(c.tap, 0) })
		b.KeepWire(c.wire)
		if _, err := io.ReadFull(&b, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		_ = b.Close()
		body, ok := b.Replay()
		if ok != c.ok {
			t.Errorf("%s: %v", name, ok)
		}
		if !ok {
			continue
		}
		if n, err := b.Read(make([]byte, 3)); n > 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("%s: an earlier reader has read %d bytes, %v", name, n, err)
		}
		all, err := io.ReadAll(body)
		b.Look(func(_ *Tap, received int64) {
			if string(all) != "abcdef" || err != nil || received != 6 {
				t.Errorf("%s: %q of %d bytes, %v", name, all, received, err)
			}
		})
		b.Detach()
		if third, ok := b.Replay(); ok {
			t.Errorf("%s: %v of a body that is over", name, third)
		}
	}
}
