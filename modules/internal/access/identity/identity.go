// Package identity verifies the tokens (JWT) that issuers of OpenID Connect give to people
// who log in, and to workloads such as Kubernetes' service accounts and GitHub's Actions.
package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/intake"
)

const (
	// Leeway is the time for which a token outlives its expiry, because the issuer's clock may be slow.
	Leeway = time.Minute
	// verifiedTTL is the time for which a verified token is not verified again, and so the time for
	// which a token is still accepted after its issuer has withdrawn the signing key.
	verifiedTTL = time.Minute
	// maxVerified bounds the verified tokens that are remembered.
	maxVerified = 10_000
	// maxToken is the longest token, in bytes.
	maxToken = 16 << 10
)

// ErrUnavailable means that the issuer does not tell by which keys it signs.
var ErrUnavailable = errors.New("the issuer of the token cannot be asked")

// algorithms are those by which tokens may be signed: the asymmetric ones. With a symmetric
// one, whoever can verify a token can make one.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512,
	oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// Issuer verifies the tokens of one issuer.
type Issuer struct {
	url       string
	audiences []string
	source    source
	now       func() time.Time

	mu       sync.Mutex     // guards the fields below
	provider *oidc.Provider // nil until the issuer has answered
	verified map[[sha256.Size]byte]Claims
	since    time.Time // when the first of verified was
}

// NewIssuer returns the issuer of a URL, which tokens state as `iss`, and below which
// `.well-known/openid-configuration` tells its keys. A token must be for one of the
// audiences. The issuer is asked when its first token comes.
func NewIssuer(url string, audiences []string) *Issuer {
	return &Issuer{url: url, audiences: audiences, source: source{through: http.DefaultTransport}, now: time.Now, verified: make(map[[sha256.Size]byte]Claims)}
}

// Issued reports whether a secret is a token that says it is of the issuer.
func (i *Issuer) Issued(secret string) bool {
	if len(secret) > maxToken || !strings.HasPrefix(secret, "eyJ") || strings.Count(secret, ".") != 2 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(secret, ".")[1])
	return err == nil && gjson.GetBytes(payload, "iss").Str == i.url
}

// Verify returns what the issuer says in a token. The error is ErrUnavailable, or says what
// is wrong with the token and does not repeat it.
func (i *Issuer) Verify(ctx context.Context, token string) (Claims, error) {
	now, hash := i.now(), sha256.Sum256([]byte(token))
	i.mu.Lock()
	if now.Sub(i.since) > verifiedTTL || len(i.verified) >= maxVerified {
		i.since = now
		clear(i.verified)
	}
	claims, ok := i.verified[hash]
	i.mu.Unlock()
	if ok && now.Before(claims.Expiry.Add(Leeway)) {
		return claims, nil
	}
	claims, err := i.verify(ctx, token)
	if err == nil {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.verified[hash] = claims
	}
	return claims, err
}

func (i *Issuer) verify(ctx context.Context, token string) (Claims, error) {
	provider, err := i.discover(ctx)
	if err != nil {
		return Claims{}, err
	}
	verifier := provider.Verifier(&oidc.Config{
		SkipClientIDCheck: true, SupportedSigningAlgs: algorithms,
		Now: func() time.Time { return i.now().Add(-Leeway) },
	})
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		if failed := i.source.failure(); failed != nil {
			return Claims{}, fmt.Errorf("%w: %w", ErrUnavailable, failed)
		}
		return Claims{}, err
	}
	var all json.RawMessage
	if err := verified.Claims(&all); err != nil {
		return Claims{}, err
	}
	// Of a claim that stands twice, the verifier and Values may read different ones, and the
	// verifier takes a name in any letter case.
	if err := intake.CheckJSON(all); err != nil {
		return Claims{}, fmt.Errorf("the claims of the token: %w", err)
	}
	claims := Claims{Issuer: i.url, Expiry: verified.Expiry, all: string(all)}
	audiences, subjects := claims.Values("aud"), claims.Values("sub")
	if !slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(i.audiences, a) }) {
		return Claims{}, fmt.Errorf("the token is for %q, not for %s", audiences, strings.Join(i.audiences, " or "))
	}
	if len(subjects) != 1 {
		return Claims{}, errors.New("the token names no subject")
	}
	claims.Subject = subjects[0]
	return claims, nil
}

// discover asks the issuer where its keys are, until it has answered once. The error is
// ErrUnavailable.
func (i *Issuer) discover(ctx context.Context) (*oidc.Provider, error) {
	i.mu.Lock()
	provider := i.provider
	i.mu.Unlock()
	if provider != nil {
		return provider, nil
	}
	client := &http.Client{Transport: &i.source, Timeout: askTimeout}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, client), i.url)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	i.mu.Lock()
	i.provider = provider
	i.mu.Unlock()
	return provider, nil
}
