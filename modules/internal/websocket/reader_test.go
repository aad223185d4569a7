package websocket

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gobwas/ws"
	"github.com/klauspost/compress/flate"
	"go.uber.org/goleak"
)

// frame is a frame as an endpoint sends it.
func frame(fin bool, op ws.OpCode, rsv byte, masked bool, payload []byte) []byte {
	f := ws.NewFrame(op, fin, payload)
	f.Header.Rsv = rsv
	if masked {
		f = ws.MaskFrame(f)
	}
	return ws.MustCompileFrame(f)
}

// sender writes messages as one side of a WebSocket does.
type sender struct {
	bytes.Buffer
	masked   bool
	takeover bool
	deflater *flate.Writer
	out      bytes.Buffer
}

// message sends text in frames of at most size bytes, with a ping before each but
// the first.
func (s *sender) message(text string, size int, compressed bool) {
	payload, rsv := []byte(text), byte(0)
	if compressed {
		payload, rsv = s.deflate(text), ws.Rsv(true, false, false)
	}
	op := ws.OpText
	for first := true; first || len(payload) > 0; first = false {
		if !first {
			s.Write(frame(true, ws.OpPing, 0, s.masked, []byte("canary")))
		}
		n := min(size, len(payload))
		s.Write(frame(n == len(payload), op, rsv, s.masked, payload[:n]))
		payload, op, rsv = payload[n:], ws.OpContinuation, 0
	}
}

func (s *sender) deflate(text string) []byte {
	if s.deflater == nil || !s.takeover {
		s.deflater, _ = flate.NewWriter(&s.out, 6)
	}
	s.out.Reset()
	s.deflater.Write([]byte(text))
	s.deflater.Flush()
	return bytes.TrimSuffix(bytes.Clone(s.out.Bytes()), []byte{0, 0, 0xff, 0xff})
}

// read returns the messages of one direction whose bytes come in chunks of a size.
func read(t testing.TB, extensions string, fromClient bool, stream []byte, size func() int) (messages []string, r *Reader) {
	t.Helper()
	header := http.Header{}
	if extensions != "" {
		header["Sec-WebSocket-Extensions"] = []string{extensions}
	}
	on := func(p []byte, _ bool) { messages = append(messages, string(p)) }
	client, server, err := Open(header, on, on)
	if err != nil {
		t.Fatal(err)
	}
	r = server
	if fromClient {
		r = client
	}
	for rest := stream; len(rest) > 0; {
		n := min(size(), len(rest))
		r.Write(bytes.Clone(rest[:n]))
		rest = rest[n:]
	}
	return messages, r
}

func whole() int { return 1 << 30 }

// Messages are the same wherever the connection cuts their frames, fragmented or
// not, compressed or not, with control frames between them.
func TestMessages(t *testing.T) {
	defer goleak.VerifyNone(t)
	texts := []string{
		`{"type":"response.create"}`, "", strings.Repeat("a", 125), strings.Repeat("b", 126), strings.Repeat("c", 65_535),
		strings.Repeat("d", 65_536), strings.Repeat(`{"delta":"the same again and again"}`, 3_000), "ünï€😀",
	}
	for _, c := range []struct {
		extensions           string
		takeover, compressed bool
	}{
		{"", false, false},
		{"permessage-deflate", true, false},
		{"permessage-deflate", true, true},
		{"permessage-deflate; server_no_context_takeover; client_no_context_takeover", false, true},
		{"permessage-deflate; server_max_window_bits=15; client_max_window_bits=15", true, true},
	} {
		for _, fromClient := range []bool{true, false} {
			for _, size := range []int{1 << 30, 1_000, 7} {
				s := sender{masked: fromClient, takeover: c.takeover}
				for i, text := range texts {
					if size == 7 {
						text = text[:min(len(text), 200)]
					}
					s.message(text, size, c.compressed && i != 2) // a message may do without
				}
				s.Write(frame(true, ws.OpClose, 0, fromClient, ws.NewCloseFrameBody(1000, "")))
				want, _ := read(t, c.extensions, fromClient, s.Bytes(), whole)
				for i, text := range want {
					if full := texts[i]; text != full[:min(len(full), len(text))] || size != 7 && text != full {
						t.Fatalf("%+v, in frames of %d: message %d is %.100q", c, size, i, text)
					}
				}
				chunk := func() int { return 1 + rand.IntN(3_000) }
				if size == 7 {
					chunk = func() int { return 1 }
				}
				got, r := read(t, c.extensions, fromClient, s.Bytes(), chunk)
				if !slices.Equal(got, want) || len(got) != len(texts) || !r.Closed() || r.Err() != nil {
					t.Errorf("%+v, in frames of %d: %d messages, closed %v, %v", c, size, len(got), r.Closed(), r.Err())
				}
				r.Stop()
			}
		}
	}
}

// A sender may end a message with a final block, and go on after it.
func TestMessageEndsWithAFinalBlock(t *testing.T) {
	var out bytes.Buffer
	z, _ := flate.NewWriter(&out, 6)
	z.Write([]byte("Hello"))
	z.Close()
	final := append(out.Bytes(), 0)
	stream := slices.Concat(frame(true, ws.OpText, 4, false, final), frame(true, ws.OpText, 0, false, []byte("next")))
	got, r := read(t, "permessage-deflate", false, stream, func() int { return 1 })
	defer r.Stop()
	if !slices.Equal(got, []string{"Hello", "next"}) || r.Err() != nil {
		t.Errorf("%q, %v", got, r.Err())
	}
}

// What breaks the protocol ends the reading, and what came before it counts.
func TestUnreadableFrames(t *testing.T) {
	defer goleak.VerifyNone(t)
	text := []byte("x")
	for name, broken := range map[string][]byte{
		"no mask":                 frame(true, ws.OpText, 0, false, text),
		"reserved opcode":         frame(true, 3, 0, true, text),
		"reserved bits":           frame(true, ws.OpText, 2, true, text),
		"long control frame":      frame(true, ws.OpPing, 0, true, make([]byte, 126)),
		"fragmented control":      frame(false, ws.OpPing, 0, true, text),
		"continuation of nothing": frame(true, ws.OpContinuation, 0, true, text),
		"two messages at once":    slices.Concat(frame(false, ws.OpText, 0, true, text), frame(true, ws.OpText, 0, true, text)),
		"negative length":         {0x81, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0},
		"HTTP":                    []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
	} {
		good := frame(true, ws.OpText, 0, true, []byte("good"))
		got, r := read(t, "", true, slices.Concat(good, broken, good), func() int { return 1 })
		if !slices.Equal(got, []string{"good"}) || r.Err() == nil || r.Closed() {
			t.Errorf("%s: messages %q, error %v", name, got, r.Err())
		}
		r.Stop()
	}
	got, r := read(t, "permessage-deflate", false, frame(true, ws.OpText, 4, false, []byte("\xff\xff\xff")), whole)
	if len(got) > 0 || r.Err() == nil {
		t.Errorf("broken compression: messages %q, error %v", got, r.Err())
	}
	r.Stop()
}

// A long message is cut, and one that decompresses to more than may be read ends
// the reading.
func TestLongMessages(t *testing.T) {
	header := http.Header{}
	header.Set("Sec-WebSocket-Extensions", "permessage-deflate")
	var lengths []int
	on := func(p []byte, _ bool) { lengths = append(lengths, len(p)) }
	_, r, err := Open(header, nil, on)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	const n = maxMessage + 1
	r.Write(ws.MustCompileFrame(ws.NewTextFrame(nil))[:1])
	r.Write([]byte{127, 0, 0, 0, 0, n >> 24 & 0xff, n >> 16 & 0xff, n >> 8 & 0xff, n & 0xff})
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range 64 {
		r.Write(chunk)
	}
	r.Write([]byte("x"))
	s := sender{takeover: true}
	s.message("after", whole(), true)
	r.Write(s.Bytes())
	if !slices.Equal(lengths, []int{maxMessage, 5}) || r.Err() != nil {
		t.Fatalf("messages of %v bytes, %v", lengths, r.Err())
	}
	s.Reset()
	s.message(strings.Repeat("x", n), whole(), true)
	r.Write(s.Bytes())
	if len(lengths) != 2 || r.Err() != errTooLong { //nolint:errorlint // it is that one
		t.Errorf("messages of %v bytes, %v", lengths, r.Err())
	}
}

func TestExtensionsThatNobodyKnows(t *testing.T) {
	for _, extensions := range []string{
		"permessage-bzip2", "permessage-deflate, permessage-deflate", "permessage-deflate; x=1",
		"permessage-deflate; server_max_window_bits=99", "\x00",
	} {
		if _, _, err := Open(http.Header{"Sec-Websocket-Extensions": {extensions}}, nil, nil); err == nil {
			t.Errorf("%q is taken", extensions)
		}
	}
}

func FuzzReader(f *testing.F) {
	s := sender{takeover: true}
	s.message(`{"type":"response.created"}`, 5, true)
	s.message(`{"type":"response.done"}`, whole(), false)
	f.Add(s.Bytes(), uint16(3), true)
	f.Add(frame(false, ws.OpText, 0, false, []byte("a")), uint16(1), false)
	f.Fuzz(func(t *testing.T, stream []byte, seed uint16, compressed bool) {
		extensions := ""
		if compressed {
			extensions = "permessage-deflate"
		}
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		want, r := read(t, extensions, false, stream, whole)
		got, cut := read(t, extensions, false, stream, func() int { return 1 + random.IntN(20) })
		if !slices.Equal(got, want) || fmt.Sprint(r.Err()) != fmt.Sprint(cut.Err()) {
			t.Errorf("in pieces %q, %v\nas a whole %q, %v", got, cut.Err(), want, r.Err())
		}
		r.Stop()
		cut.Stop()
	})
}
