package login

import (
	"errors"
	"fmt"

	"github.com/zalando/go-keyring"
)

// keychainService is the name of Weir in keychains.
const keychainService = "weir"

// hide moves the secret to the keychain, if there is one that takes it: Windows takes 2560 bytes,
// and servers have none.
func (l *Login) hide() {
	if l.Secret != "" && keyring.Set(keychainService, l.Address, l.Secret) == nil {
		l.Secret, l.InKeychain = "", true
	}
}

func (l *Login) secret() (string, error) {
	if !l.InKeychain {
		return l.Secret, nil
	}
	secret, err := keyring.Get(keychainService, l.Address)
	if errors.Is(err, keyring.ErrNotFound) {
		return "", &NoLoginError{l.Address, errors.New("the keychain has lost it")}
	}
	if err != nil {
		return "", fmt.Errorf("the keychain cannot be read: unlock it, or run `weir login %s`: %w", l.Address, err)
	}
	return secret, nil
}
