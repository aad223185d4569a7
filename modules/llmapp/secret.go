package llmapp

import (
	"github.com/weirhq/weir/modules/internal/stores"
)

// Secret returns the secret that keys what clients carry for the gateway: the
// configured one, or else that of the store, which is made when it is first
// asked for.
func (a *App) Secret(s *stores.Store) ([]byte, error) {
	if a.SecretText == "" {
		return s.Secret()
	}
	secret, err := a.lines.Expand("secret", a.SecretText)
	if err != nil {
		return nil, err
	}
	return []byte(secret), nil
}
