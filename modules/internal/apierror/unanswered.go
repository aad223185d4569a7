package apierror

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/plugins"
)

// Unanswered returns the error for a provider that did not answer, by the status that tells why.
// host is where the call went, "" if it went nowhere. The message names the host and what failed
// there: its name, the connection, TLS, or the time. err is not quoted, except for the causes that
// the system or the TLS library states: it may have the provider's URL, and a key in it.
func Unanswered(status int, host string, err error) *plugins.Error {
	e := plugins.Refused(status, http.StatusText(status))
	switch status {
	case http.StatusBadGateway:
		e.Code, e.Message = "upstream_unreachable", unreachable(host, err)
	case http.StatusServiceUnavailable:
		e.Code, e.Message = "upstream_unavailable", "No upstream of the provider is available."
	case http.StatusGatewayTimeout:
		e.Code = "upstream_timeout"
		switch {
		case redact.Dial(err) != nil:
			e.Message = unreachable(host, err)
		case host == "":
			e.Message = "The provider did not answer in time."
		default:
			e.Message = fmt.Sprintf("The provider's host %s did not answer in time.", host)
		}
	}
	return e
}

func unreachable(host string, err error) string {
	if host == "" || err == nil {
		return "The provider could not be reached."
	}
	if dial := redact.Dial(err); dial != nil {
		return unconnected(host, dial.Error())
	}
	if cause := tlsFailure(err); cause != "" {
		return fmt.Sprintf("TLS with the provider's host %s failed: %s.", host, cause)
	}
	return fmt.Sprintf("The provider's host %s ended the connection before it answered.", host)
}

// unconnected says why there is no connection, by the text of net.OpError, which ends with the
// system's words.
func unconnected(host, text string) string {
	cause := text[strings.LastIndex(text, ": ")+1:]
	switch {
	case strings.Contains(text, "lookup "):
		return fmt.Sprintf("The provider's host name %s cannot be resolved:%s.", host, cause)
	case strings.HasSuffix(text, "connection refused"):
		return fmt.Sprintf("The provider's host %s refuses connections.", host)
	case strings.HasSuffix(text, "i/o timeout"):
		return fmt.Sprintf("The provider's host %s did not accept a connection in time.", host)
	}
	return fmt.Sprintf("The provider's host %s cannot be reached:%s.", host, cause)
}

// tlsFailure says why there is no TLS, "" if that is not what failed.
func tlsFailure(err error) string {
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[tls.AlertError](err); ok {
		return e.Error()
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return "the host speaks no TLS there"
	}
	return ""
}

// UnansweredStatus is the status for the error with which a call to a provider ended.
func UnansweredStatus(err error) int {
	n, ok := errors.AsType[net.Error](err)
	if ok && n.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}
