package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/intake"
)

// Claims are what an issuer says of the bearer of a token.
type Claims struct {
	// Issuer and Subject together name the bearer in all tokens.
	Issuer, Subject string
	// Expiry is when the token ends.
	Expiry time.Time
	// TrustEmail says that the issuer verifies each email, and leaves email_verified out.
	TrustEmail bool

	all string // JSON
}

// merge returns the claims with others, in JSON, that the issuer says of the same bearer. Those
// of the token stay as they are.
func (c Claims) merge(others []byte) (Claims, error) {
	if err := intake.CheckJSON(others); err != nil {
		return Claims{}, fmt.Errorf("the claims at the UserInfo endpoint: %w", err)
	}
	all := make(map[string]json.RawMessage)
	if err := json.Unmarshal(others, &all); err != nil {
		return Claims{}, err
	}
	if gjson.GetBytes(all["sub"], "@this").Str != c.Subject {
		return Claims{}, errors.New("the UserInfo endpoint tells of somebody else")
	}
	if err := json.Unmarshal([]byte(c.all), &all); err != nil {
		return Claims{}, err
	}
	text, err := json.Marshal(all)
	c.all = string(text)
	return c, err
}

// VerifiedEmail is the one email of the bearer that the issuer says it has verified, "" for none.
func (c Claims) VerifiedEmail() string {
	if emails := c.Values("email"); len(emails) == 1 {
		return emails[0]
	}
	return ""
}

// isEmailVerified reports whether the issuer answers for the email, which anybody may have named
// otherwise. email_verified is true or "true".
func (c Claims) isEmailVerified() bool {
	verified := c.Values("email_verified")
	return len(verified) == 1 && verified[0] == "true" || len(verified) == 0 && c.TrustEmail
}

// Values returns the texts of a claim: all of a list, and none where the claim is missing or is an
// email that is not verified. The name is that of the claim, such as `https://acme.com/team`, or
// else the path to a claim within others, such as `realm_access.roles`.
func (c Claims) Values(name string) (texts []string) {
	if name == "email" && !c.isEmailVerified() {
		return nil
	}
	claim := gjson.Get(c.all, gjson.Escape(name))
	if !claim.Exists() {
		parts := strings.Split(name, ".")
		for i := range parts {
			parts[i] = gjson.Escape(parts[i])
		}
		claim = gjson.Get(c.all, strings.Join(parts, "."))
	}
	if claim.IsObject() {
		return nil
	}
	for _, v := range claim.Array() { // of a text, the text
		if text := v.String(); v.Type != gjson.Null && !v.IsArray() && !v.IsObject() && text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}
