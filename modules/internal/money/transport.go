package money

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/modules/internal/transport"
)

func init() {
	caddy.RegisterModule(AccountTransport{})
}

type billInContext struct{}

// WithBill returns r as a request that AccountTransport sends with the bill.
func WithBill(r *http.Request, bill *Bill) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), billInContext{}, bill))
}

// AccountTransport sends what `llm_log` with `credentials platform` has admitted: to the
// address of the provider, through the provider's own transport, and with the key of the
// account. It sends nothing else.
type AccountTransport struct{}

// CaddyModule returns the Caddy module information.
func (AccountTransport) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.transport.llm_account", New: func() caddy.Module { return new(AccountTransport) }}
}

// UnmarshalCaddyfile takes no options.
func (*AccountTransport) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume the name
	if d.NextArg() || d.NextBlock(0) {
		return d.ArgErr()
	}
	return nil
}

var (
	errNoBill = errors.New("llm_account sends nothing that llm_log with `credentials platform` has not admitted")
	// ErrCredentials means that a provider does not accept the platform's credentials, or that nothing
	// is left on their account, which is not the caller's fault.
	ErrCredentials = errors.New("the provider does not accept the platform's credentials")
)

// RoundTrip implements http.RoundTripper.
func (*AccountTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	bill, ok := req.Context().Value(billInContext{}).(*Bill)
	if !ok {
		return nil, errNoBill
	}
	req = bill.account.Direct(req)
	if resp := transport.Intercept(req, ""); resp != nil {
		return resp, nil
	}
	resp, err := bill.Send(req)
	if err != nil || !bill.account.Platform {
		return resp, err
	}
	if e := bill.account.PeekError(resp); e != nil && bill.account.IsPlatformAccountError(e, resp.StatusCode) {
		_ = resp.Body.Close() // nobody reads it
		return nil, ErrCredentials
	}
	return resp, nil
}

// Interface guards
var (
	_ http.RoundTripper     = (*AccountTransport)(nil)
	_ caddyfile.Unmarshaler = (*AccountTransport)(nil)
)
