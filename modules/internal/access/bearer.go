package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/access/identity"
)

// verify returns the key of a token from an issuer of one of the identities.
func (a *Authenticator) verify(ctx context.Context, token string) (*Key, error) {
	err := ErrUnknownKey
	for _, i := range a.identities {
		if !i.issuer.Issued(token) {
			continue
		}
		var claims identity.Claims
		if claims, err = i.issuer.Verify(ctx, token); err != nil {
			if expired, ok := errors.AsType[*oidc.TokenExpiredError](err); ok {
				err = &ExpiredError{At: expired.Expiry, Renewable: i.ClientID != ""}
			} else if errors.Is(err, identity.ErrUnavailable) {
				a.logger.Error("a token cannot be verified", zap.String("issuer", i.Issuer), zap.Error(err))
			}
			continue
		}
		var key *Key
		if key, err = i.key(ctx, a, claims); err == nil {
			key.endsAt = claims.Expiry.Add(identity.Leeway)
			return key, nil
		}
	}
	return nil, err
}

// ExpiredError is the error for a token that was valid until a time.
type ExpiredError struct {
	At        time.Time
	Renewable bool // `weir login` can renew it
}

func (e *ExpiredError) Error() string { return "it expired at " + e.At.UTC().Format(time.RFC3339) }

// Trusts reports whether there is an identity with this issuer.
func (a *Authenticator) Trusts(issuer string) bool {
	return slices.ContainsFunc(a.identities, func(i *Identity) bool { return i.Issuer == issuer })
}

// KeyOfBearer returns the key of a bearer with verified claims. The error says which claim keeps
// the bearer out.
func (a *Authenticator) KeyOfBearer(ctx context.Context, c identity.Claims) (*Key, error) {
	err := fmt.Errorf("no identity of the issuer %s is configured", c.Issuer)
	for _, i := range a.identities {
		if i.Issuer != c.Issuer {
			continue
		}
		var key *Key
		if key, err = i.key(ctx, a, c); err == nil {
			return key, nil
		}
	}
	return nil, err
}

// key returns the key of a bearer with these claims, with the settings of its project.
func (i *Identity) key(ctx context.Context, a *Authenticator, c identity.Claims) (*Key, error) {
	c.TrustEmail = i.TrustEmail
	for _, claim := range slices.Sorted(maps.Keys(i.Require)) {
		required := i.Require[claim]
		if !slices.ContainsFunc(c.Values(claim), func(value string) bool { return accepts(required, value) }) {
			return nil, fmt.Errorf("its claim %s is not one that is required", claim)
		}
	}
	key := (&Key{Scopes: slices.Clone(i.Scopes), org: i.org, issuer: c.Issuer}).hashed(sha256.Sum256([]byte(c.Issuer + "\x00" + c.Subject)))
	if err := i.setNames(key, a, c); err != nil {
		return nil, err
	}
	key.store = a.StoreOf(key.org)
	hasRole := false
	for _, r := range i.Roles {
		if slices.Contains(c.Values(r.Claim), r.Value) {
			key.Scopes, hasRole = append(key.Scopes, r.Scopes...), true
		}
	}
	if i.Members && !hasRole {
		if err := a.enterMember(ctx, key, c); err != nil {
			return nil, err
		}
	}
	if len(key.Scopes) == 0 { // a key of the configuration without scopes has all
		if i.Members {
			return nil, errors.New("its claims have no role, and its verified email is no member's")
		}
		return nil, errors.New("its claims have no role")
	}
	return key, a.enterProject(ctx, key)
}

// setNames sets the organisation, the user and the project of a key from the claims that name them.
func (i *Identity) setNames(key *Key, a *Authenticator, c identity.Claims) error {
	for _, naming := range []struct {
		claim, what string
		to          *string
	}{{i.OrgClaim, "organisation of this gateway", &key.org}, {i.UserClaim, "user", &key.user}, {i.ProjectClaim, "project", &key.project}} {
		if naming.claim == "" {
			continue
		}
		names := c.Values(naming.claim)
		if len(names) != 1 || naming.to == &key.org && !a.has(names[0]) {
			err := fmt.Errorf("its claim %s names no %s", naming.claim, naming.what)
			if naming.claim == "email" {
				err = fmt.Errorf("%w: an email counts if email_verified is true", err)
			}
			return err
		}
		*naming.to = names[0]
	}
	return nil
}

// accepts reports whether a value is one of those accepted. One that ends in an asterisk accepts each value
// with the text before the asterisk as its prefix.
func accepts(accepted []string, value string) bool {
	return slices.ContainsFunc(accepted, func(a string) bool {
		prefix, open := strings.CutSuffix(a, "*")
		return a == value || open && strings.HasPrefix(value, prefix)
	})
}
