package coding

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
)

type flushWriter interface {
	io.WriteCloser
	Flush() error
}

// encoders are those of each coding; "deflate" comes in two forms.
var encoders = []struct {
	coding string
	open   func(w io.Writer) flushWriter
}{
	{"gzip", func(w io.Writer) flushWriter { return gzip.NewWriter(w) }},
	{"deflate", func(w io.Writer) flushWriter { return zlib.NewWriter(w) }},
	{"Deflate", func(w io.Writer) flushWriter { z, _ := flate.NewWriter(w, 6); return z }},
	{"br", func(w io.Writer) flushWriter { return brotli.NewWriter(w) }},
	{"zstd", func(w io.Writer) flushWriter { z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)); return z }},
}

func encodings(t testing.TB, body []byte) map[string][]byte {
	t.Helper()
	encoded := map[string][]byte{}
	for _, e := range encoders {
		var b bytes.Buffer
		w := e.open(&b)
		w.Write(body)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		encoded[e.coding] = b.Bytes()
	}
	return encoded
}

// decoder decodes into memory.
func decoder(t testing.TB, encoding string) (*Decoder, *bytes.Buffer) {
	t.Helper()
	out := new(bytes.Buffer)
	d, ok := NewDecoder(encoding, func(p []byte) { out.Write(p) })
	if !ok {
		t.Fatalf("%q is unknown", encoding)
	}
	return d, out
}

// feed writes b in pieces of a size.
func feed(write func([]byte), b []byte, size int) {
	for piece := range slices.Chunk(b, size) {
		write(bytes.Clone(piece))
	}
}

func TestDecoder(t *testing.T) {
	defer goleak.VerifyNone(t)
	body := []byte(strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\"some text\"}}]}\n\n", 3000))
	for coding, encoded := range encodings(t, body) {
		for _, size := range []int{1 << 30, 1, 7, 300} {
			d, out := decoder(t, coding)
			feed(d.Write, encoded, size)
			// Nothing that came may wait for the end.
			if !bytes.Equal(out.Bytes(), body) {
				t.Errorf("%s, %d: %d bytes of %d before the end", coding, size, out.Len(), len(body))
			}
			d.Close()
			if !bytes.Equal(out.Bytes(), body) || d.Err() != nil {
				t.Errorf("%s, %d: %d bytes of %d: %v", coding, size, out.Len(), len(body), d.Err())
			}
		}
	}
}

// A server flushes each event of a stream, which must arrive at once.
func TestDecoderGivesWhatWasFlushed(t *testing.T) {
	for _, e := range encoders {
		var wire bytes.Buffer
		w := e.open(&wire)
		d, out := decoder(t, e.coding)
		for i := range 50 {
			event := fmt.Sprintf("data: %d\n\n", i)
			io.WriteString(w, event)
			w.Flush()
			out.Reset()
			d.Write(wire.Next(wire.Len()))
			if out.String() != event {
				t.Fatalf("%s: %q, want %q", e.coding, out, event)
			}
		}
		d.Close()
		if !errors.Is(d.Err(), io.ErrUnexpectedEOF) {
			t.Errorf("%s: a stream that was cut: %v", e.coding, d.Err())
		}
	}
}

// The end of a stream must be seen before its last bytes, a checksum, have come.
func TestDecoderNeedsNoChecksum(t *testing.T) {
	body := []byte("data: [DONE]\n\n")
	for coding, trailer := range map[string]int{"gzip": 8, "deflate": 4} {
		encoded := encodings(t, body)[coding]
		d, out := decoder(t, coding)
		d.Write(encoded[:len(encoded)-trailer])
		if !bytes.Equal(out.Bytes(), body) {
			t.Errorf("%s: %q", coding, out)
		}
		d.Close()
	}
}

func TestDecoderOfSeveralCodings(t *testing.T) {
	body := []byte(strings.Repeat("data: x\n\n", 100))
	encoded := encodings(t, encodings(t, encodings(t, body)["gzip"])["br"])["zstd"]
	d, out := decoder(t, "gzip, BR , zstd")
	feed(d.Write, encoded, 7)
	d.Close()
	if !bytes.Equal(out.Bytes(), body) || d.Err() != nil {
		t.Errorf("%q, %v", out, d.Err())
	}
	for _, identity := range []string{"", "identity"} {
		d, out := decoder(t, identity)
		d.Write(body)
		d.Close()
		if !bytes.Equal(out.Bytes(), body) || d.Err() != nil {
			t.Errorf("%q: %q, %v", identity, out, d.Err())
		}
	}
	for _, unknown := range []string{"compress", "gzip, lzma", "br;q=1", "gzip,gzip,gzip,gzip"} {
		if _, ok := NewDecoder(unknown, nil); ok {
			t.Errorf("%q is known", unknown)
		}
	}
}

func TestDecoderOfSeveralGzipMembers(t *testing.T) {
	d, out := decoder(t, "x-gzip")
	d.Write(encodings(t, []byte("one"))["gzip"])
	d.Write(encodings(t, []byte("two"))["gzip"])
	d.Close()
	if out.String() != "onetwo" || d.Err() != nil {
		t.Errorf("%q, %v", out, d.Err())
	}
}

func TestDecoderOfBrokenInput(t *testing.T) {
	defer goleak.VerifyNone(t)
	for coding, encoded := range encodings(t, []byte(strings.Repeat("data: x\n\n", 100))) {
		d, _ := decoder(t, coding)
		d.Write(encoded[:len(encoded)/2])
		d.Close()
		if d.Err() == nil {
			t.Errorf("%s: no error of a body that was cut", coding)
		}
		d, out := decoder(t, coding)
		d.Write(bytes.Repeat([]byte{0xff}, 100))
		if d.Err() == nil {
			t.Errorf("%s: no error of what is none", coding)
		}
		n := out.Len()
		d.Write(encoded)
		if out.Len() > n {
			t.Errorf("%s: output after an error", coding)
		}
		d.Close()
		d.Close()
	}
	decoder(t, "gzip")
}

// A small body must not become an endless one.
func TestDecoderStopsBombs(t *testing.T) {
	var bomb bytes.Buffer
	w, _ := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	zeros := make([]byte, 1<<20)
	for range maxDecoded>>20 + 1 {
		w.Write(zeros)
	}
	w.Close()
	n := 0
	d, _ := NewDecoder("gzip", func(p []byte) { n += len(p) })
	d.Write(bomb.Bytes())
	d.Close()
	if most := freeDecoded + maxRatio*slice; n < freeDecoded || n > most || d.Decoded() != n || !errors.Is(d.Err(), errTooLong) {
		t.Errorf("%d bytes, %v, want at most %d", n, d.Err(), most)
	}
	r, _ := NewReader("gzip", &bomb, 1<<20)
	if read, err := io.Copy(io.Discard, r); read > 1<<20 || !errors.Is(err, ErrTooLong) {
		t.Errorf("%d bytes, %v, want at most 1 MiB", read, err)
	}
	var long bytes.Buffer
	w, _ = gzip.NewWriterLevel(&long, gzip.NoCompression)
	for range maxDecoded>>20 + 1 {
		w.Write(zeros)
	}
	w.Close()
	n = 0
	d, _ = NewDecoder("gzip", func(p []byte) { n += len(p) })
	d.Write(long.Bytes())
	d.Close()
	if n != maxDecoded || !errors.Is(d.Err(), errTooLong) {
		t.Errorf("%d bytes of what is not compressed, %v", n, d.Err())
	}
	// A window that no client needs to have.
	huge := []byte{0x28, 0xB5, 0x2F, 0xFD, 0x00, 0xA0, 0x01, 0x00, 0x00}
	d, _ = decoder(t, "zstd")
	d.Write(huge)
	d.Close()
	if !errors.Is(d.Err(), zstd.ErrWindowSizeExceeded) && !errors.Is(d.Err(), zstd.ErrDecoderSizeExceeded) {
		t.Errorf("a window of 1 GiB: %v", d.Err())
	}
}

func TestPumpOutlivesPanics(t *testing.T) {
	p := NewPump(func(io.Reader) error { panic("x") })
	p.Write([]byte("a"))
	p.Write([]byte("b"))
	p.Close()
	if p.err == nil {
		t.Error("no error")
	}
}

// What is pulled is what is pushed, up to the bound.
func TestReader(t *testing.T) {
	body := []byte(strings.Repeat("data: x\n\n", 3000))
	all := encodings(t, body)
	all["zstd, br , GZIP"] = encodings(t, encodings(t, all["zstd"])["br"])["gzip"]
	for coding, encoded := range all {
		read := func(b []byte, most int64) ([]byte, error) {
			r, ok := NewReader(coding, iotest.OneByteReader(bytes.NewReader(b)), most)
			if !ok {
				t.Fatalf("%q is unknown", coding)
			}
			defer r.Close()
			return io.ReadAll(r)
		}
		if got, err := read(encoded, int64(len(body))); !bytes.Equal(got, body) || err != nil {
			t.Errorf("%s: %d bytes of %d: %v", coding, len(got), len(body), err)
		}
		if got, err := read(encoded, int64(len(body)-1)); len(got) >= len(body) || !errors.Is(err, ErrTooLong) {
			t.Errorf("%s: %d bytes behind a bound: %v", coding, len(got), err)
		}
		if _, err := read(encoded[:len(encoded)/2], int64(len(body))); err == nil {
			t.Errorf("%s: no error of a body that was cut", coding)
		}
		if _, err := read(bytes.Repeat([]byte{0xff}, 100), int64(len(body))); err == nil {
			t.Errorf("%s: no error of what is none", coding)
		}
	}
	if _, ok := NewReader("compress", nil, 0); ok {
		t.Error("compress is known")
	}
}

func FuzzDecoder(f *testing.F) {
	for i, e := range encoders {
		f.Add(uint8(i), encodings(f, []byte("data: some text\n\n"))[e.coding], uint16(1))
	}
	for i := range encoders {
		f.Add(uint8(i), []byte("\x1f\x8b\b0000000"), uint16(1)) // the header of gzip breaks off in a comment
	}
	f.Fuzz(func(t *testing.T, coding uint8, b []byte, seed uint16) {
		run := func(size func() int) (string, bool) {
			d, out := decoder(t, encoders[int(coding)%len(encoders)].coding)
			for rest := b; len(rest) > 0; {
				n := min(len(rest), size())
				d.Write(rest[:n])
				rest = rest[n:]
			}
			d.Close()
			return out.String(), d.Err() == nil
		}
		whole, wholeOK := run(func() int { return 1 << 30 })
		r, _ := NewReader(encoders[int(coding)%len(encoders)].coding, bytes.NewReader(b), maxDecoded)
		pulled, err := io.ReadAll(r)
		r.Close()
		if len(b) > 0 && (err == nil) != wholeOK || wholeOK && whole != string(pulled) {
			t.Fatalf("pulled %q, %v, pushed %q, %t", pulled, err, whole, wholeOK)
		}
		n := uint32(seed)
		cut, cutOK := run(func() int {
			n = n*1664525 + 1013904223
			return 1 + int(n>>24)%23
		})
		// What came before an error may differ by what was decoded at once.
		if wholeOK != cutOK || wholeOK && whole != cut {
			t.Fatalf("in pieces %q, %t, as a whole %q, %t", cut, cutOK, whole, wholeOK)
		}
	})
}

func BenchmarkDecoder(b *testing.B) {
	body := []byte(strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\"some words\"}}]}\n\n", 200))
	for coding, encoded := range encodings(b, body) {
		b.Run(coding, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				d, _ := NewDecoder(coding, func([]byte) {})
				feed(d.Write, encoded, 512)
				d.Close()
			}
		})
	}
}
