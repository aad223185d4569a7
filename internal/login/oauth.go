package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Flow logs a person in at an issuer.
type Flow struct {
	config    oauth2.Config
	client    Client
	http      *http.Client
	revokeURL string // "" if the issuer revokes no tokens
	// HasDevice is true if the issuer gives device codes.
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
	// A browser opens the first, which must not be a file or a program. The others get codes and tokens.
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

// audience returns the option that asks for a token for the gateway, if it needs one.
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
		// Some issuers give a refresh token only if they ask the person for consent
		// (https://openid.net/specs/openid-connect-core-1_0.html#OfflineAccess). Others would ask an
		// administrator then, so that the first attempt does not ask for it.
		if renewable, err := f.authorize(ctx, show, oauth2.SetAuthURLParam("prompt", "consent")); err == nil {
			return renewable, nil
		}
	}
	return l, err
}

// authorize opens the browser once, and exchanges the code with which it comes back for tokens.
func (f *Flow) authorize(ctx context.Context, show func(address string), options ...oauth2.AuthCodeOption) (Login, error) {
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	callback, err := listenForCallback(state)
	if err != nil {
		return Login{}, err
	}
	defer callback.close(ctx)
	f.config.RedirectURL = callback.url
	options = append(options, oauth2.S256ChallengeOption(verifier))
	show(f.config.AuthCodeURL(state, append(options, f.audience()...)...))
	var query url.Values
	select {
	case query = <-callback.queries:
	case <-ctx.Done():
		return Login{}, ctx.Err()
	}
	if refused := query.Get("error"); refused != "" {
		return Login{}, fmt.Errorf("the issuer says %.100q: %.300q", refused, query.Get("error_description"))
	}
	if issuer := query.Get("iss"); issuer != "" && issuer != f.client.Issuer { // https://www.rfc-editor.org/rfc/rfc9207
		return Login{}, fmt.Errorf("the answer is of another issuer: %.300q", issuer)
	}
	tokens, err := f.config.Exchange(f.withClient(ctx), query.Get("code"), oauth2.VerifierOption(verifier))
	return f.login(tokens, err)
}

// Device logs in by a code that the person enters in a browser anywhere (RFC 8628).
func (f *Flow) Device(ctx context.Context, show func(address, code string)) (Login, error) {
	device, err := f.config.DeviceAuth(f.withClient(ctx), f.audience()...)
	if err != nil {
		return Login{}, f.failure(err)
	}
	show(cmp.Or(device.VerificationURIComplete, device.VerificationURI), device.UserCode)
	tokens, err := f.config.DeviceAccessToken(f.withClient(ctx), device)
	return f.login(tokens, err)
}

// withClient makes the oauth2 library use the flow's HTTP client.
func (f *Flow) withClient(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, f.http)
}

// failure returns the error of the issuer for an error of the oauth2 library.
func (f *Flow) failure(err error) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode != "" {
		return fmt.Errorf("the issuer %s says %.100q: %.300q", f.client.Issuer, refused.ErrorCode, refused.ErrorDescription)
	}
	return fmt.Errorf("the issuer %s: %w", f.client.Issuer, err)
}

// login returns the login with the tokens of the issuer.
func (f *Flow) login(tokens *oauth2.Token, err error) (Login, error) {
	if err != nil {
		return Login{}, f.failure(err)
	}
	l := Login{Client: f.client, TokenURL: f.config.Endpoint.TokenURL, RevokeURL: f.revokeURL}
	return l, l.setTokens(tokens)
}
