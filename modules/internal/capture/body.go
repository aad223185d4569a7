package capture

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Body is a request body that is copied while a transport reads it. Some transports still read after
// the handler has returned. After Detach, they get the error that the server would return: a read that
// reached the server's body would race with the access log, which reads its counters.
type Body struct {
	io.ReadCloser
	Length int64 // the announced length in bytes; 0 or less if it is unknown

	reading  sync.Mutex   // held during a read from the client; guards complete and replays
	complete bool         // the client has sent the whole body
	replays  int32        // how many readers Replay has returned
	ended    atomic.Int32 // how many readers have ended, the oldest first

	mu       sync.Mutex // guards tap, wire, keepsWire and received
	tap      Tap
	wire     Copy // the received bytes, if keepsWire
	received int64
	// keepsWire is true if Replay needs wire, because the tap keeps nothing or decodes what it keeps.
	keepsWire bool
	detached  atomic.Bool // Detach was called
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) { return b.read(p, 0) }

// read reads for one reader: 0 is the Body itself, n is the reader that the nth Replay returned.
func (b *Body) read(p []byte, reader int32) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if reader < b.ended.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	// A transport reads on after the announced length. By then the answer may have begun, and the server
	// may have closed its body. The error of a closed body would make the transport cut the answer off.
	if b.complete {
		return 0, io.EOF
	}
	if b.detached.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	if n == 0 && err == nil {
		return n, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.received += int64(n); err == nil && b.received == b.Length {
		err = io.EOF
	}
	b.complete = err == io.EOF
	if b.detached.Load() {
		return n, err
	}
	b.tap.Write(p[:n])
	b.wire.Write(p[:n])
	if err == io.EOF {
		b.tap.Close()
	}
	return n, err
}

// Close implements io.Closer. It leaves the server's body open: the server reads the rest and closes it
// when the answer is written. Caddy wraps that body (read_idle_timeout), so net/http does not notice if
// somebody else closes it early. It would then take the rest of the body for the next request.
func (b *Body) Close() error { return b.close(0) }

func (b *Body) close(reader int32) error {
	b.ended.CompareAndSwap(reader, reader+1)
	return nil
}

// Look calls f with the tap and the number of bytes received so far. No bytes are added meanwhile.
func (b *Body) Look(f func(t *Tap, received int64)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.tap, b.received)
}

// KeepWire keeps up to limit received bytes for Replay, unless the tap keeps them unchanged.
func (b *Body) KeepWire(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.keepsWire = b.tap.max == 0 || b.tap.decoder != nil; b.keepsWire {
		b.wire.Keep(limit, b.Length)
	}
}

// Replay returns a reader of the whole body from its first byte, and ends all earlier readers. ok is
// false if some of the received bytes were not kept.
func (b *Body) Replay() (body io.ReadCloser, ok bool) {
	b.reading.Lock() // an earlier reader may still wait for the client
	defer b.reading.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	received := b.tap.Bytes()
	if b.keepsWire {
		received = b.wire.Bytes()
	}
	if b.detached.Load() || int64(len(received)) != b.received {
		return nil, false
	}
	b.replays++
	b.ended.Store(b.replays)
	return &replay{bytes.NewReader(received), b, b.replays}, true
}

// replay reads the received bytes of a body again, and then the rest from the client.
type replay struct {
	received *bytes.Reader
	body     *Body
	number   int32 // of the Replay that returned it, from 1
}

// Read implements io.Reader.
func (r *replay) Read(p []byte) (int, error) {
	if r.received.Len() > 0 {
		return r.received.Read(p)
	}
	return r.body.read(p, r.number)
}

// Close implements io.Closer.
func (r *replay) Close() error { return r.body.close(r.number) }

// FreeWire frees the bytes that only Replay needs.
func (b *Body) FreeWire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wire.Free()
}

// Detach frees the copies, and refuses all further reads.
func (b *Body) Detach() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tap.Close()
	b.tap.Free()
	b.wire.Free()
	b.detached.Store(true)
}
