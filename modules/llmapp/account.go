package llmapp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/plugins/translate"
)

func init() {
	caddy.RegisterModule(AccountTransport{})
}

// CanForward reports whether the requests of clients can go to the account with its key in
// place of theirs: the account has an address, and its key alone decides who pays.
func (a *Account) CanForward() bool { return a.BaseURL != "" && a.keyHeader() != "" }

// keyHeader is the header field in which the provider takes its key, "" if it takes none
// that says who pays.
func (a *Account) keyHeader() string {
	if api, ok := a.API.(translate.KeyHeader); ok {
		return api.KeyHeader()
	}
	return translate.Bearer
}

// Authorize writes what stands for the account's key into the header of a request. Bill.Send
// puts the key in its place.
func (a *Account) Authorize(header http.Header) {
	switch field := a.keyHeader(); {
	case a.standIn == "":
	case field == translate.Bearer:
		header.Set(field, "Bearer "+a.standIn)
	default:
		header.Set(field, a.standIn)
	}
}

// address returns the scheme and the host of the account's address.
func (a *Account) address() *url.URL {
	u, err := url.Parse(a.BaseURL)
	if err != nil { // it was parsed when it was configured
		return new(url.URL)
	}
	return u
}

// below puts the path of a client's request below the path of an account's address, such as a
// gateway's. A client that names the beginning of the address's path names all of it, and what both
// name stands once: /v1/models is /proxy/v1/models below /proxy/v1.
func below(base, path string) string {
	base = strings.TrimRight(base, "/")
	first, _, _ := strings.Cut(strings.TrimPrefix(base, "/"), "/")
	if base == "" || strings.HasPrefix(path+"/", "/"+first+"/") {
		return path
	}
	for end := range base {
		if base[end] == '/' && strings.HasPrefix(path+"/", base[end:]+"/") {
			return base[:end] + path
		}
	}
	if version.MatchString(base) { // the client names another, or none
		base = base[:strings.LastIndexByte(base, '/')]
	}
	return base + path
}

// version is a path that ends with the version of an API.
var version = regexp.MustCompile(`/v[0-9][a-z0-9]*$`)

// HostPort returns the host and the port of the account's address.
func (a *Account) HostPort() string {
	u := a.address()
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// choosing are headers that say which part of a provider's account pays.
var choosing = []string{"Openai-Organization", "Openai-Project"}

// PassHeaders copies those headers of a caller that mean something within an account at
// OpenAI. At an account that organisations share, those that say which part of it pays are
// left out with a warning, and the key of a repeated call is hashed with the organisation,
// which must not get the answer of another.
func (a *App) PassHeaders(org string, account *Account, from, to http.Header) (warnings []string) {
	shared := a.Shares(org, account)
	for _, name := range choosing {
		switch values := from[name]; {
		case values == nil:
		case shared:
			warnings = append(warnings, name+": left out, the provider's account is shared with other organizations")
		default:
			to[name] = values
		}
	}
	if key := from.Get("Idempotency-Key"); key != "" {
		if shared {
			sum := sha256.Sum256([]byte(org + "\x00" + key))
			key = hex.EncodeToString(sum[:])
		}
		to.Set("Idempotency-Key", key)
	}
	return warnings
}

type ticketInContext struct{}

// WithTicket returns r as a request that AccountTransport sends with the ticket.
func WithTicket(r *http.Request, t *Bill) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), ticketInContext{}, t))
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
	errNoTicket = errors.New("llm_account sends nothing that llm_log with `credentials platform` has not admitted")
	// ErrCredentials means that a provider does not accept the platform's credentials, which
	// is not the caller's fault.
	ErrCredentials = errors.New("the provider does not accept the platform's credentials")
)

// RoundTrip implements http.RoundTripper.
func (*AccountTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ticket, ok := req.Context().Value(ticketInContext{}).(*Bill)
	if !ok {
		return nil, errNoTicket
	}
	to, at := *req.URL, ticket.account.address()
	to.Scheme, to.Host = at.Scheme, at.Host
	to.Path = below(at.Path, to.Path)
	if to.RawPath != "" {
		to.RawPath = below(at.EscapedPath(), to.RawPath)
	}
	sent := *req
	sent.URL, sent.Host = &to, at.Host
	resp, err := ticket.Send(&sent)
	if err == nil && ticket.account.Platform && slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden}, resp.StatusCode) {
		_ = resp.Body.Close() // nobody reads it
		return nil, ErrCredentials
	}
	return resp, err
}

// Interface guards
var (
	_ http.RoundTripper     = (*AccountTransport)(nil)
	_ caddyfile.Unmarshaler = (*AccountTransport)(nil)
)
