package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/tidwall/gjson"
	"golang.org/x/oauth2"
)

// exchangeTimeout bounds how long the issuer may take to exchange a code for a token.
const exchangeTimeout = 10 * time.Second

// Login logs people in at an issuer with their browser, by OpenID Connect's authorization
// code flow with PKCE (RFC 7636).
type Login struct {
	// Issuer has the client as its one audience.
	Issuer *Issuer
	// ClientID is the name of the dashboard at the issuer, ClientSecret its secret, "" for a
	// public client.
	ClientID, ClientSecret string
}

// Attempt is one login that has begun. The browser alone keeps it, so that nobody else can
// end it.
type Attempt struct {
	State, Nonce, Verifier string
}

// Begin returns a login, and the address at the issuer to which the browser goes. The issuer
// sends the browser back to the callback, an address that it knows.
func (l *Login) Begin(ctx context.Context, callback string) (Attempt, string, error) {
	config, err := l.config(ctx, callback)
	if err != nil {
		return Attempt{}, "", err
	}
	a := Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	return a, config.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// End returns who has logged in. The answer is the query with which the browser came back to
// the callback. The error is ErrUnavailable, or says why nobody has.
func (l *Login) End(ctx context.Context, a Attempt, callback string, answer url.Values) (Claims, error) {
	if a.State == "" || subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(a.State)) == 0 {
		return Claims{}, errors.New("the login was not begun in this browser, or took too long")
	}
	if refused := answer.Get("error"); refused != "" {
		return Claims{}, fmt.Errorf("the issuer says %.100q: %.300q", refused, answer.Get("error_description"))
	}
	config, err := l.config(ctx, callback)
	if err != nil {
		return Claims{}, err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: exchangeTimeout})
	tokens, err := config.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(a.Verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response.StatusCode < 500 {
		return Claims{}, fmt.Errorf("the issuer refuses the code: %.100q", refused.ErrorCode)
	}
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	token, _ := tokens.Extra("id_token").(string)
	claims, err := l.Issuer.Verify(ctx, token)
	if err != nil {
		return Claims{}, err
	}
	if nonces := claims.Values("nonce"); len(nonces) != 1 || nonces[0] != a.Nonce {
		return Claims{}, errors.New("the token is that of another login")
	}
	return l.complete(ctx, claims, tokens)
}

// complete adds to the claims of a token without an email what the issuer says of the bearer at
// its UserInfo endpoint. Issuers may say there alone what the scopes profile and email ask for
// (https://openid.net/specs/openid-connect-core-1_0.html#ScopeClaims).
func (l *Login) complete(ctx context.Context, c Claims, tokens *oauth2.Token) (Claims, error) {
	provider, err := l.Issuer.discover(ctx)
	if err != nil {
		return Claims{}, err
	}
	if provider.UserInfoEndpoint() == "" || gjson.Get(c.all, "email").Exists() {
		return c, nil
	}
	info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	var claims json.RawMessage
	if err := info.Claims(&claims); err != nil {
		return Claims{}, err
	}
	return c.merge(claims)
}

func (l *Login) config(ctx context.Context, callback string) (*oauth2.Config, error) {
	provider, err := l.Issuer.discover(ctx)
	if err != nil {
		return nil, err
	}
	return &oauth2.Config{
		ClientID: l.ClientID, ClientSecret: l.ClientSecret, Endpoint: provider.Endpoint(), RedirectURL: callback,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
	}, nil
}
