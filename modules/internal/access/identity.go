package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/access/identity"
	"github.com/weirhq/weir/modules/internal/stores"
)

// Identity admits people and workloads by the tokens (JWT) that an issuer of OpenID Connect
// has given them, where others send an API key.
type Identity struct {
	// Issuer is the URL in the token's `iss`. It publishes its keys below
	// `/.well-known/openid-configuration`.
	Issuer string `json:"issuer"`

	// Audiences are names of this gateway at the issuer. The token's `aud` must have one of
	// them.
	Audiences []string `json:"audiences"`

	// Require are claims that a token must have, each with the accepted values. `*` at the
	// end of a value stands for any ending. An issuer that also serves others, such as
	// GitHub, needs some: `"repository_owner": ["acme"]`.
	Require map[string][]string `json:"require,omitempty"`

	// OrgClaim is the claim that names the organisation of the bearer, which must be
	// configured. Default: the organisation that has the identity.
	OrgClaim string `json:"org_claim,omitempty"`

	// UserClaim is the claim that names the user of the bearer's calls, such as `email` or
	// `sub`. An `email` counts as missing without `email_verified`, here as in all other
	// options. Default: none, and calls name their user by themselves.
	UserClaim string `json:"user_claim,omitempty"`

	// ProjectClaim is the claim that names the project of the bearer's calls. Default: none.
	ProjectClaim string `json:"project_claim,omitempty"`

	// Scopes are the scopes of every token.
	Scopes []string `json:"scopes,omitempty"`

	// Roles allow more to the bearers of a claim.
	Roles []Role `json:"roles,omitempty"`

	// Members gives a bearer whose claims have none of Roles the role of the organisation's
	// member with the same email. The issuer must have verified the email. Anyone who gets
	// the issuer to state an email becomes that member. Default: false.
	Members bool `json:"members,omitempty"`

	// TrustEmail takes the emails of tokens that have no `email_verified`, as those of an issuer
	// that verifies every email. Default: false.
	TrustEmail bool `json:"trust_email,omitempty"`

	// ClientID is the public client at the issuer by which `weir login` logs people in, with a
	// browser or a device code. Default: none, and people have to bring their token or a key.
	ClientID string `json:"client_id,omitempty"`

	// ClientScopes are what `weir login` asks for, besides `openid`, `profile` and `email`.
	ClientScopes []string `json:"client_scopes,omitempty"`

	org    string // that the identity stands in
	issuer *identity.Issuer
}

// Role is what a value of a claim allows.
type Role struct {
	// Claim is the name of the claim, such as `groups` or `realm_access.roles`.
	Claim string `json:"claim"`
	// Value is the claim's value, or one of its values.
	Value string `json:"value"`
	// Scopes are the scopes of the role.
	Scopes []string `json:"scopes"`
}

// Check finds what is wrong with an identity.
func (i *Identity) Check() error {
	u, err := url.Parse(i.Issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" {
		return fmt.Errorf("identity jwt %s: want the URL of an issuer, as in `identity jwt https://login.example.com`", i.Issuer)
	}
	switch {
	case len(i.Audiences) == 0:
		return fmt.Errorf("identity jwt %s: audience is missing: without it, tokens for other services would be accepted", i.Issuer)
	case len(i.ClientScopes) > 0 && i.ClientID == "":
		return fmt.Errorf("identity jwt %s: client_scopes without client_id: name the client of `weir login` at the issuer", i.Issuer)
	case len(i.Scopes) == 0 && len(i.Roles) == 0 && !i.Members:
		return fmt.Errorf("identity jwt %s: scopes are missing, out of %s; roles and members give some as well", i.Issuer, strings.Join(Scopes, ", "))
	}
	named := slices.Clone(i.Scopes)
	for _, r := range i.Roles {
		if len(r.Scopes) == 0 {
			return fmt.Errorf("identity jwt %s: role %s %s: scopes are missing, out of %s", i.Issuer, r.Claim, r.Value, strings.Join(Scopes, ", "))
		}
		named = append(named, r.Scopes...)
	}
	if err := CheckScopes(named); err != nil {
		return fmt.Errorf("identity jwt %s: %w", i.Issuer, err)
	}
	return nil
}

// AddIdentity admits the bearers of an identity that stands in an organisation.
func (a *Authenticator) AddIdentity(i *Identity, org string) error {
	i.org = org
	err := i.Check()
	if err == nil && i.OrgClaim != "" && org != stores.DefaultName {
		err = fmt.Errorf("identity jwt %s: an identity of the organisation %s cannot name others: move it out of `org %[2]s`, or leave `org` out", i.Issuer, org)
	}
	i.issuer = identity.NewIssuer(i.Issuer, i.Audiences)
	a.identities = append(a.identities, i)
	return err
}

// verify returns the key of a token that says that it is of a known issuer.
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
	Renewable bool // by `weir login`
}

func (e *ExpiredError) Error() string { return "it expired at " + e.At.UTC().Format(time.RFC3339) }

// Login is how people log in at an issuer from a terminal.
type Login struct {
	Issuer   string   `json:"issuer"`
	ClientID string   `json:"client_id"`
	Scopes   []string `json:"scopes,omitempty"`
	// Audience is the audience that the access token must have. It is "" if clients send the ID token,
	// whose audience is the client itself.
	Audience string `json:"audience,omitempty"`
}

// Logins are those of all identities with a client.
func (a *Authenticator) Logins() []Login {
	all := make([]Login, 0, len(a.identities))
	for _, i := range a.identities {
		l := Login{Issuer: i.Issuer, ClientID: i.ClientID, Scopes: i.ClientScopes}
		if !slices.Contains(i.Audiences, i.ClientID) {
			l.Audience = i.Audiences[0]
		}
		if i.ClientID != "" {
			all = append(all, l)
		}
	}
	return all
}

// Trusts reports whether there is an identity of an issuer.
func (a *Authenticator) Trusts(issuer string) bool {
	return slices.ContainsFunc(a.identities, func(i *Identity) bool { return i.Issuer == issuer })
}

// KeyOfBearer returns the key of whom an issuer has named. The error says which claim keeps
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

// key returns the key that the claims give, within its project.
func (i *Identity) key(ctx context.Context, a *Authenticator, c identity.Claims) (*Key, error) {
	c.TrustEmail = i.TrustEmail
	for _, claim := range slices.Sorted(maps.Keys(i.Require)) {
		required := i.Require[claim]
		if !slices.ContainsFunc(c.Values(claim), func(value string) bool { return accepts(required, value) }) {
			return nil, fmt.Errorf("its claim %s is not one that is required", claim)
		}
	}
	key := (&Key{Scopes: slices.Clone(i.Scopes), org: i.org, issuer: c.Issuer}).hashed(sha256.Sum256([]byte(c.Issuer + "\x00" + c.Subject)))
	for _, naming := range []struct {
		claim, what string
		to          *string
	}{{i.OrgClaim, "organisation of this gateway", &key.org}, {i.UserClaim, "user", &key.user}, {i.ProjectClaim, "project", &key.project}} {
		if naming.claim == "" {
			continue
		}
		named := c.Values(naming.claim)
		if len(named) != 1 || naming.to == &key.org && !a.has(named[0]) {
			err := fmt.Errorf("its claim %s names no %s", naming.claim, naming.what)
			if naming.claim == "email" {
				err = fmt.Errorf("%w: an email counts if email_verified is true", err)
			}
			return nil, err
		}
		*naming.to = named[0]
	}
	key.store = a.StoreOf(key.org)
	named := false
	for _, r := range i.Roles {
		if slices.Contains(c.Values(r.Claim), r.Value) {
			key.Scopes, named = append(key.Scopes, r.Scopes...), true
		}
	}
	if i.Members && !named {
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

// accepts reports whether a value is one of those accepted, or begins like one that ends in
// an asterisk.
func accepts(accepted []string, value string) bool {
	return slices.ContainsFunc(accepted, func(a string) bool {
		prefix, open := strings.CutSuffix(a, "*")
		return a == value || open && strings.HasPrefix(value, prefix)
	})
}
