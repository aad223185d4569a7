package llmapp

import (
	"github.com/weirhq/weir/modules/internal/stores"
)

// Secret returns the secret by which the gateway encrypts what clients carry for it: the configured
// one, else that of the store, which the first call creates.
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
