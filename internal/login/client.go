package login

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// Client is how a gateway wants people to log in: an entry of weir_logins in its metadata.
type Client struct {
	Issuer string   `json:"issuer,omitempty"`
	ID     string   `json:"client_id,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	// Audience is the audience that the access token must have, "" if the gateway takes the ID token.
	Audience string `json:"audience,omitempty"`
}

// resourcePath is where a gateway says which issuers' tokens it accepts (RFC 9728).
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

// Clients returns how people can log in to a gateway.
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
