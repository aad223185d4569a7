package compat

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// encoder encodes what it is given, and holds nothing back when flushed.
type encoder interface {
	io.WriteCloser
	Flush() error
}

// identity encodes nothing.
type identity struct{ io.Writer }

func (identity) Flush() error { return nil }
func (identity) Close() error { return nil }

// encode gives the encoder of a content coding that the client accepts, brotli
// before zstd before gzip as providers prefer it, and the coding's name, which
// is empty for identity.
func encode(w io.Writer, r *http.Request) (encoder, string) {
	accepted := strings.Join(r.Header.Values("Accept-Encoding"), ",")
	accepts := func(coding string) bool {
		for name := range strings.SplitSeq(accepted, ",") {
			if strings.TrimSpace(name) == coding {
				return true
			}
		}
		return false
	}
	switch {
	case accepts("br"):
		return brotli.NewWriter(w), "br"
	case accepts("zstd"):
		e, _ := zstd.NewWriter(w) // only options make it fail
		return e, "zstd"
	case accepts("gzip"):
		return gzip.NewWriter(w), "gzip"
	default:
		return identity{w}, ""
	}
}

// Interface guards
var (
	_ encoder = identity{}
	_ encoder = (*gzip.Writer)(nil)
	_ encoder = (*brotli.Writer)(nil)
	_ encoder = (*zstd.Encoder)(nil)
)
