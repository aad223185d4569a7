package access

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

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

	org    string // whose configuration has the identity
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

// Check returns an error that says what is wrong with the identity, nil if nothing is.
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
	scopes := slices.Clone(i.Scopes)
	for _, r := range i.Roles {
		if len(r.Scopes) == 0 {
			return fmt.Errorf("identity jwt %s: role %s %s: scopes are missing, out of %s", i.Issuer, r.Claim, r.Value, strings.Join(Scopes, ", "))
		}
		scopes = append(scopes, r.Scopes...)
	}
	if err := CheckScopes(scopes); err != nil {
		return fmt.Errorf("identity jwt %s: %w", i.Issuer, err)
	}
	return nil
}

// AddIdentity admits the bearers of an identity in the configuration of an organisation.
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
