package coding

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The decoders of each content coding (RFC 9110, section 8.4.1; RFC 9659 for
// zstd). All are reused, since their windows are most of what a call costs.

// inflater decodes gzip and deflate.
type inflater struct {
	in   *bufio.Reader
	gzip gzip.Reader
	body io.ReadCloser
}

var inflaters = sync.Pool{New: func() any {
	return &inflater{in: bufio.NewReader(nil), body: flate.NewReader(bytes.NewReader(nil))}
}}

func borrowInflater(r io.Reader) (z *inflater, giveBack func()) {
	z = inflaters.Get().(*inflater)
	z.in.Reset(r)
	return z, func() {
		z.in.Reset(nil)
		inflaters.Put(z)
	}
}

// An opener begins to undo a coding. giveBack, which is never nil, lets others use
// the window.
type opener func(in io.Reader) (decoded io.Reader, giveBack func(), err error)

func openGzip(in io.Reader) (io.Reader, func(), error) {
	z, giveBack := borrowInflater(in)
	if _, err := z.in.Peek(1); err != nil {
		return &z.gzip, giveBack, err
	}
	err := z.gzip.Reset(z.in)
	if errors.Is(err, io.EOF) { // the header broke off: the body is not empty
		err = io.ErrUnexpectedEOF
	}
	return &z.gzip, giveBack, err
}

// openDeflate reads zlib's format as the specification wants it, and the bare one
// that some senders use. It leaves zlib's checksum to others.
func openDeflate(in io.Reader) (io.Reader, func(), error) {
	z, giveBack := borrowInflater(in)
	if h, err := z.in.Peek(2); err == nil && h[0]&0x0f == 8 && (int(h[0])<<8|int(h[1]))%31 == 0 {
		_, _ = z.in.Discard(2)
	}
	return z.body, giveBack, z.body.(flate.Resetter).Reset(z.in, nil)
}

// messageEnd holds the four bytes that the sender of a compressed message leaves out
// (RFC 7692, 7.2.1), and an empty last block, which ends the stream for the decoder.
const messageEnd = "\x00\x00\xff\xff\x01\x00\x00\xff\xff"

// InflateMessage decodes a message of a WebSocket's permessage-deflate, which
// refers to the window before it (RFC 7692, section 7.2.2).
func InflateMessage(w io.Writer, r io.Reader, window []byte) error {
	z, giveBack := borrowInflater(io.MultiReader(r, strings.NewReader(messageEnd)))
	defer giveBack()
	if err := z.body.(flate.Resetter).Reset(z.in, window); err != nil {
		return err
	}
	_, err := z.body.(io.WriterTo).WriteTo(w)
	return err
}

// unbrotlier is a brotli reader with room for its output.
type unbrotlier struct {
	brotli.Reader
	out [16 << 10]byte
}

var unbrotliers = sync.Pool{New: func() any { return new(unbrotlier) }}

// WriteTo implements io.WriterTo.
func (z *unbrotlier) WriteTo(w io.Writer) (int64, error) {
	return io.CopyBuffer(w, &z.Reader, z.out[:])
}

func openBrotli(in io.Reader) (io.Reader, func(), error) {
	z := unbrotliers.Get().(*unbrotlier)
	return z, func() {
		_ = z.Reset(nil)
		unbrotliers.Put(z)
	}, z.Reset(in)
}

// maxWindow is what RFC 9659 lets a client need for a zstd stream.
const maxWindow = 8 << 20

var unzstders = sync.Pool{New: func() any {
	// Without concurrency it has no goroutines to close.
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic(err) // the options are out of range
	}
	return z
}}

func openZstd(in io.Reader) (io.Reader, func(), error) {
	z := unzstders.Get().(*zstd.Decoder)
	return z, func() {
		_ = z.Reset(nil)
		unzstders.Put(z)
	}, z.Reset(in)
}

// openers returns those of a Content-Encoding header, in the order in which the
// codings were applied: up to three out of gzip, deflate (with and without zlib's
// header), br, zstd and identity. Any other encoding gives false.
func openers(encoding string) (list []opener, ok bool) {
	names := strings.Split(encoding, ",")
	if len(names) > maxCodings {
		return nil, false
	}
	for _, name := range names {
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "gzip", "x-gzip":
			list = append(list, openGzip)
		case "deflate":
			list = append(list, openDeflate)
		case "br":
			list = append(list, openBrotli)
		case "zstd":
			list = append(list, openZstd)
		case "", "identity":
		default:
			return nil, false
		}
	}
	return list, true
}
