package access

import "slices"

// Login is how people log in at an issuer from a terminal.
type Login struct {
	Issuer   string   `json:"issuer"`
	ClientID string   `json:"client_id"`
	Scopes   []string `json:"scopes,omitempty"`
	// Audience is the audience that the access token must have. It is "" if clients send the ID token,
	// whose audience is the client itself.
	Audience string `json:"audience,omitempty"`
}

// Logins returns the logins of all identities with a client.
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
