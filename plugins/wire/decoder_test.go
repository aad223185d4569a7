package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
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
