package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/tidwall/gjson"
	"golang.org/x/oauth2"
)

// Client is how a gateway wants people to log in: an entry of weir_logins in its metadata.
type Client struct {
	Issuer string   `json:"issuer,omitempty"`
	ID     string   `json:"client_id,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	// Audience is the audience that the access token must have, "" if the gateway takes the ID token.
	Audience string `json:"audience,omitempty"`
}

// resourcePath is where a gateway says whose tokens it takes (RFC 9728).
const resourcePath = "/.well-known/oauth-protected-resource"

// maxAnswer bounds an answer of a gateway, in bytes.
const maxAnswer = 1 << 20

// CheckAddress returns an error for an address at which a token could be read on its way.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !IsLoopback(u.Hostname())) {
		return fmt.Errorf("%q: expected https:// and a host, as in https://llm.example.com; http:// is for this machine alone", address)
	}
	return nil
}

// IsLoopback reports whether a host is this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Clients asks a gateway how people log in.
func Clients(ctx context.Context, client *http.Client, address string) ([]Client, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+resourcePath, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	var metadata struct {
		Resource string
		Logins   []Client `json:"weir_logins"`
	}
	if err := json.Unmarshal(text, &metadata); err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s%s answered %s: is it a site with llm_gateway?", address, resourcePath, response.Status)
	}
	if metadata.Resource != address { // https://www.rfc-editor.org/rfc/rfc9728#section-3.3
		return nil, fmt.Errorf("%s says that it is %q: use this address, or let its Caddyfile trust the balancer before it (trusted_proxies)", address, metadata.Resource)
	}
	for _, c := range metadata.Logins {
		if err := CheckAddress(c.Issuer); err != nil {
			return nil, fmt.Errorf("the issuer of %s: %w", address, err)
		}
	}
	return metadata.Logins, nil
}

// Flow logs a person in at an issuer.
type Flow struct {
	config    oauth2.Config
	client    Client
	http      *http.Client
	revokeURL string
	// HasDevice is set if the issuer gives device codes.
	HasDevice bool
}

// Discover asks the issuer of a client for its addresses.
func Discover(ctx context.Context, client *http.Client, c Client) (*Flow, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, client), c.Issuer)
	if err != nil {
		return nil, fmt.Errorf("the issuer %s: %w", c.Issuer, err)
	}
	var more struct {
		Scopes []string `json:"scopes_supported"`
		Revoke string   `json:"revocation_endpoint"`
	}
	if err := provider.Claims(&more); err != nil {
		return nil, fmt.Errorf("the issuer %s: %w", c.Issuer, err)
	}
	endpoint := provider.Endpoint()
	// A browser opens one of them, which must be no file and no program; the others get codes and tokens.
	for _, address := range []string{endpoint.AuthURL, endpoint.TokenURL, endpoint.DeviceAuthURL, more.Revoke} {
		if err := CheckAddress(address); address != "" && err != nil {
			return nil, fmt.Errorf("the issuer %s names an address that cannot be used: %w", c.Issuer, err)
		}
	}
	scopes := append([]string{oidc.ScopeOpenID, "profile", "email"}, c.Scopes...)
	if slices.Contains(more.Scopes, oidc.ScopeOfflineAccess) && !slices.Contains(scopes, oidc.ScopeOfflineAccess) {
		scopes = append(scopes, oidc.ScopeOfflineAccess) // those that do not list it refuse it, such as Google
	}
	endpoint.AuthStyle = oauth2.AuthStyleInParams // trying both styles would use a code or a refresh token up
	return &Flow{
		config: oauth2.Config{ClientID: c.ID, Endpoint: endpoint, Scopes: scopes},
		client: c, http: client, revokeURL: more.Revoke, HasDevice: endpoint.DeviceAuthURL != "",
	}, nil
}

func (f *Flow) audience() (options []oauth2.AuthCodeOption) {
	if f.client.Audience != "" {
		options = append(options, oauth2.SetAuthURLParam("audience", f.client.Audience))
	}
	return options
}

// Browser logs in by a browser, which comes back to a port of this machine (RFC 8252). show gets
// the address for the browser.
func (f *Flow) Browser(ctx context.Context, show func(address string)) (Login, error) {
	l, err := f.authorize(ctx, show)
	if err == nil && l.Secret == "" && slices.Contains(f.config.Scopes, oidc.ScopeOfflineAccess) {
		// Some issuers give refresh tokens to none but who consents
		// (https://openid.net/specs/openid-connect-core-1_0.html#OfflineAccess). Others ask an administrator
		// for consent then, so the first question goes without.
		if renewable, err := f.authorize(ctx, show, oauth2.SetAuthURLParam("prompt", "consent")); err == nil {
			return renewable, nil
		}
	}
	return l, err
}

func (f *Flow) authorize(ctx context.Context, show func(address string), options ...oauth2.AuthCodeOption) (Login, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Login{}, err
	}
	f.config.RedirectURL = "http://" + listener.Addr().String() + "/callback"
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	answers := make(chan url.Values, 1)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if r.URL.Path != "/callback" || query.Get("state") != state { // of others on this machine
			http.NotFound(w, r)
			return
		}
		text := "You are logged in. You can close this window."
		if query.Get("error") != "" {
			text = "You are not logged in: the terminal says why."
		}
		_, _ = io.WriteString(w, text)
		select {
		case answers <- query:
		default:
		}
	})}
	go func() { _ = server.Serve(listener) }()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // for the browser's answer
		defer cancel()
		_ = server.Shutdown(ctx)
	}()
	options = append(options, oauth2.S256ChallengeOption(verifier))
	show(f.config.AuthCodeURL(state, append(options, f.audience()...)...))
	var query url.Values
	select {
	case query = <-answers:
	case <-ctx.Done():
		return Login{}, ctx.Err()
	}
	if refused := query.Get("error"); refused != "" {
		return Login{}, fmt.Errorf("the issuer says %.100q: %.300q", refused, query.Get("error_description"))
	}
	if issuer := query.Get("iss"); issuer != "" && issuer != f.client.Issuer { // https://www.rfc-editor.org/rfc/rfc9207
		return Login{}, fmt.Errorf("the answer is of another issuer: %.300q", issuer)
	}
	tokens, err := f.config.Exchange(f.through(ctx), query.Get("code"), oauth2.VerifierOption(verifier))
	return f.login(tokens, err)
}

// Device logs in by a code that the person enters in a browser anywhere (RFC 8628).
func (f *Flow) Device(ctx context.Context, show func(address, code string)) (Login, error) {
	device, err := f.config.DeviceAuth(f.through(ctx), f.audience()...)
	if err != nil {
		return Login{}, f.failure(err)
	}
	show(cmp.Or(device.VerificationURIComplete, device.VerificationURI), device.UserCode)
	tokens, err := f.config.DeviceAccessToken(f.through(ctx), device)
	return f.login(tokens, err)
}

func (f *Flow) through(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, f.http)
}

func (f *Flow) failure(err error) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode != "" {
		return fmt.Errorf("the issuer %s says %.100q: %.300q", f.client.Issuer, refused.ErrorCode, refused.ErrorDescription)
	}
	return fmt.Errorf("the issuer %s: %w", f.client.Issuer, err)
}

func (f *Flow) login(tokens *oauth2.Token, err error) (Login, error) {
	if err != nil {
		return Login{}, f.failure(err)
	}
	l := Login{Client: f.client, TokenURL: f.config.Endpoint.TokenURL, RevokeURL: f.revokeURL}
	return l, l.take(tokens)
}

// take takes what the issuer gives: also a new refresh token, whose predecessor may be used up, if
// the rest is of no use.
func (l *Login) take(tokens *oauth2.Token) error {
	if tokens.RefreshToken != "" {
		l.Secret, l.InKeychain = tokens.RefreshToken, false
	}
	token := tokens.AccessToken
	if l.Client.Audience == "" {
		token, _ = tokens.Extra("id_token").(string)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return fmt.Errorf("the issuer %s gave no token that the gateway can verify: its client %s must get an ID token, or access tokens (JWT) for the audience of the gateway", l.Client.Issuer, l.Client.ID)
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return fmt.Errorf("the token of the issuer %s: %w", l.Client.Issuer, err)
	}
	now := time.Now()
	// The difference of two times of the issuer's clock: this machine's may be wrong.
	issued := cmp.Or(gjson.GetBytes(claims, "iat").Int(), now.Unix())
	life := time.Duration(gjson.GetBytes(claims, "exp").Int()-issued) * time.Second
	l.Token, l.RenewAt, l.EndsAt = token, now.Add(life/2), now.Add(life)
	return nil
}

// renew gets a new token.
func (l *Login) renew(ctx context.Context, client *http.Client) error {
	secret, err := l.secret()
	if err != nil {
		return err
	}
	if secret == "" {
		return &NoLoginError{l.Address, errors.New("the issuer gave no refresh token")}
	}
	config := oauth2.Config{ClientID: l.Client.ID, Endpoint: oauth2.Endpoint{TokenURL: l.TokenURL, AuthStyle: oauth2.AuthStyleInParams}}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	tokens, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: secret}).Token()
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode != "" && refused.Response.StatusCode < 429 {
		return &NoLoginError{l.Address, fmt.Errorf("the issuer says %.100q", refused.ErrorCode)}
	}
	if err != nil {
		return fmt.Errorf("the issuer %s gives no new token now: %w", l.Client.Issuer, err)
	}
	if tokens.RefreshToken == secret { // it stays where it is
		tokens.RefreshToken = ""
	}
	return l.take(tokens)
}

// revoke tells the issuer that the login has ended (RFC 7009), and reports whether it knows.
func (l *Login) revoke(ctx context.Context, secret string, client *http.Client) bool {
	if l.RevokeURL == "" || secret == "" {
		return false
	}
	form := url.Values{"token": {secret}, "token_type_hint": {"refresh_token"}, "client_id": {l.Client.ID}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(r)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}
