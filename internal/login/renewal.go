package login

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/oauth2"
)

// setTokens sets the tokens of the login. It sets a new refresh token also if it returns an error,
// because the one before may be used up.
func (l *Login) setTokens(tokens *oauth2.Token) error {
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
	// Both times are of the issuer's clock, because this machine's may be wrong.
	issued := cmp.Or(gjson.GetBytes(claims, "iat").Int(), now.Unix())
	life := time.Duration(gjson.GetBytes(claims, "exp").Int()-issued) * time.Second
	l.Token, l.RenewAt, l.EndsAt = token, now.Add(life/2), now.Add(life)
	return nil
}

// renew gets a new token from the issuer.
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
	return l.setTokens(tokens)
}

// revoke revokes the refresh token at the issuer (RFC 7009), and reports whether that succeeded.
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
