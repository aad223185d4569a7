package apierror

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A client reads where its call went and what failed there, and nothing of the call's URL.
func TestUnanswered(t *testing.T) {
	in := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://llm.example.com/v1?key=sk-canary", Err: err}
	}
	dial := func(err error) error { return in(&net.OpError{Op: "dial", Net: "tcp", Err: err}) }
	for want, err := range map[string]error{
		"The provider's host name llm.example.com:443 cannot be resolved: no such host.": dial(&net.DNSError{Err: "no such host", Name: "llm.example.com"}),
		"The provider's host llm.example.com:443 refuses connections.":                   dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"The provider's host llm.example.com:443 cannot be reached: no route to host.":   dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)),
		"The provider's host llm.example.com:443 did not accept a connection in time.":   dial(os.ErrDeadlineExceeded),
		"TLS with the provider's host llm.example.com:443 failed: x509: certificate signed by unknown authority.": in(&tls.CertificateVerificationError{
			Err: x509.UnknownAuthorityError{},
		}),
		"TLS with the provider's host llm.example.com:443 failed: the host speaks no TLS there.": in(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}),
		"The provider's host llm.example.com:443 ended the connection before it answered.":       in(io.EOF),
		"The provider's host llm.example.com:443 did not answer in time.":                        in(os.ErrDeadlineExceeded),
	} {
		e := Unanswered(UnansweredStatus(err), "llm.example.com:443", err)
		if e.Message != want || strings.Contains(e.Message, "canary") {
			t.Errorf("%v:\n%q, want\n%q", err, e.Message, want)
		}
		if timeout := strings.Contains(want, "in time"); (e.Status == http.StatusGatewayTimeout) != timeout {
			t.Errorf("%v: status %d", err, e.Status)
		}
	}
}
