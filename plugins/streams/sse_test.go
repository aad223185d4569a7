package streams

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// lines writes down the events of a framing.
type lines struct {
	text   []byte
	events []string
}

func (l *lines) Data(p []byte) { l.text = append(l.text, p...) }
func (l *lines) Dispatch(name []byte) {
	l.events = append(l.events, fmt.Sprintf("%s=%s", name, l.text))
	l.text = l.text[:0]
}

func sseEvents(body []byte, size func() int) []string {
	var l lines
	s := SSE{To: &l}
	feed(s.Write, body, size)
	s.Close()
	return l.events
}

func TestSSE(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"line feeds", "data: a\n\ndata: b\n\n", []string{"=a", "=b"}},
		{"carriage returns", "data: a\r\rdata: b\r\r", []string{"=a", "=b"}},
		{"both", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"=a", "=b"}},
		{"mixed", "data: a\r\r\ndata: b\n\rdata: c\r\n\n", []string{"=a", "=b", "=c"}},
		{"no space, and two", "data:a\n\ndata:  b\n\n", []string{"=a", "= b"}},
		{"several lines", "data: a\ndata:\ndata\ndata: b\n\n", []string{"=a\n\n\nb"}},
		{"comments and other fields", ": ping\nid: 1\nretry: 5\ndata: a\nda: x\ndatas: x\n: data: y\n\n", []string{"=a"}},
		{"names", "event: error\ndata: a\n\ndata: b\n\nevent: x\n\ndata: c\n\n", []string{"error=a", "=b", "=c"}},
		{"last name", "event: x\nevent: y\ndata: a\n\n", []string{"y=a"}},
		{"no last blank line", "data: a\n\ndata: b\n", []string{"=a", "=b"}},
		{"no last line feed", "data: a\n\ndata: b", []string{"=a", "=b"}},
		{"no last colon", "data: a\ndata", []string{"=a\n"}},
		{"empty", "", nil},
		{"blank lines", "\n\r\n\r", nil},
		{"colons", "data: a: b\n\n", []string{"=a: b"}},
		{"error lines", "data: a\n\nerror: b\r\rerror: c", []string{"=a", "error=b", "error=c"}},
	} {
		for name, size := range chunkings {
			if got := sseEvents([]byte(c.body), size); !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: %q, want %q", c.name, name, got, c.want)
			}
		}
	}
}

// readSSE is the specification again, on a whole body.
func readSSE(body []byte) (events []string) {
	body = bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
	body = bytes.ReplaceAll(body, []byte("\r"), []byte("\n"))
	var name []byte
	var data [][]byte
	for _, line := range bytes.Split(append(body, "\n\n"...), []byte("\n")) {
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			if len(data) > 0 {
				events = append(events, fmt.Sprintf("%s=%s", name, bytes.Join(data, []byte("\n"))))
			}
			name, data = nil, nil
		case string(field) == "data":
			data = append(data, value)
		case string(field) == "error":
			name, data = field, append(data, value)
		case string(field) == "event":
			name = value[:min(len(value), maxEventName)]
		}
	}
	return events
}

func FuzzSSE(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: b\ndata\r\rdata:c"), uint16(1))
	f.Add([]byte(": x\n\ndata:  y\n\nevent\ndata: z\r\n\r\n"), uint16(9))
	f.Add([]byte("data:a\rerror: b\r\ndata: [DONE]\r\n\n"), uint16(5))
	f.Fuzz(func(t *testing.T, b []byte, seed uint16) {
		b = bytes.TrimLeft(b, ByteOrderMark)
		want := readSSE(b)
		if got := sseEvents(b, cuts(seed)); !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
		for data := range SSEData(b) {
			if _, whole, _ := strings.Cut(want[0], "="); string(data) != whole {
				t.Fatalf("%q of the whole body, want %q", data, want[0])
			}
			want = want[1:]
		}
		if len(want) > 0 {
			t.Fatalf("%q are not in the whole body", want)
		}
	})
}

func FuzzNDJSON(f *testing.F) {
	f.Add([]byte("{\"a\":1}\r\n\n{\"b\":2}"), uint16(2))
	f.Fuzz(func(t *testing.T, b []byte, seed uint16) {
		var want []string
		for line := range bytes.SplitSeq(b, newline) {
			want = append(want, "="+string(line))
		}
		var l lines
		n := NDJSON{To: &l}
		feed(n.Write, b, cuts(seed))
		n.Close()
		if len(b) == 0 {
			want = []string{"="}
		}
		if !slices.Equal(l.events, want) {
			t.Fatalf("%q, want %q", l.events, want)
		}
	})
}

// chunkings are the sizes in which bodies come.
var chunkings = map[string]func() int{
	"whole":  func() int { return 1 << 30 },
	"bytes":  func() int { return 1 },
	"sevens": func() int { return 7 },
	"random": func() int { return 1 + rand.IntN(300) },
}

// cuts are sizes that a fuzzer chooses.
func cuts(seed uint16) func() int {
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	return func() int { return 1 + r.IntN(23) }
}

// feed writes body in chunks and overwrites each after it was written, as the
// buffers of a proxy are.
func feed(write func([]byte), body []byte, size func() int) {
	for len(body) > 0 {
		n := min(len(body), size())
		chunk := bytes.Clone(body[:n])
		write(chunk)
		clear(chunk)
		body = body[n:]
	}
}
