package redact

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
)

// Upstream is what may be logged of an error that a provider's answer led to. The
// errors of net/http quote what they cannot read, which may be content: only
// those are passed on that are known not to.
func Upstream(err error) error {
	if err == nil {
		return nil
	}
	if e := Dial(err); e != nil {
		return e
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return e
	}
	if e, ok := errors.AsType[tls.AlertError](err); ok {
		return e
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e
	}
	for _, e := range [...]error{io.ErrUnexpectedEOF, io.EOF, context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded} {
		if errors.Is(err, e) {
			return e
		}
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return os.ErrDeadlineExceeded
	}
	text := err.Error()
	for _, known := range knownTexts {
		if strings.Contains(text, known) {
			return errors.New(known)
		}
	}
	return errUnknown
}

// Dial returns the error within err that says why there is no connection to an address, nil if
// that is not what failed. Its text has the address and the system's words. It is found by the
// text: reverse_proxy's DialError does not tell what it wraps
// (https://pkg.go.dev/github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy#DialError).
func Dial(err error) error {
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.HasPrefix(err.Error(), "dial ") {
			return err
		}
	}
	return nil
}

// knownTexts are parts of errors' texts that stand for the whole.
var knownTexts = [...]string{
	"no upstreams available", "server closed idle connection", "connection refused", "server gave HTTP response to HTTPS client",
	"first record does not look like a TLS handshake",
	"malformed HTTP response", "malformed HTTP status code", "malformed HTTP version", "malformed MIME header",
	"bad Content-Length", "malformed chunked encoding", "invalid byte in chunk length", "http chunk length too large",
	"unsupported transfer encoding", "server response headers exceeded", "too many 1xx informational responses",
	"suspiciously long trailer", "stream error", "server sent GOAWAY",
}

var errUnknown = errors.New("the upstream's answer cannot be read")

// StandardLog keeps content out of what net/http writes to the standard library's
// log: bytes that a provider sends beyond its Content-Length, which Transport
// quotes as an unsolicited response.
// Caddy sets the output of that log anew whenever it loads a configuration, also
// one that fails, so this is to be called time and again.
func StandardLog() {
	if _, ok := log.Writer().(*unsolicitedFilter); ok {
		return
	}
	installing.Lock()
	defer installing.Unlock()
	w := log.Writer()
	if _, ok := w.(*unsolicitedFilter); !ok {
		log.SetOutput(&unsolicitedFilter{w})
	}
}

var installing sync.Mutex

// unsolicitedFilter is the output of a log without what unsolicited responses start
// with.
type unsolicitedFilter struct{ io.Writer }

// Write implements io.Writer.
func (u *unsolicitedFilter) Write(line []byte) (int, error) {
	const quoting = "Unsolicited response received on idle HTTP channel"
	shown := line
	if i := bytes.Index(line, []byte(quoting)); i >= 0 {
		shown = append(bytes.Clone(line[:i+len(quoting)]), '\n')
	}
	if _, err := u.Writer.Write(shown); err != nil {
		return 0, err
	}
	return len(line), nil
}
