package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/zalando/go-keyring"

	"github.com/weirhq/weir/internal/disk"
)

// Login is what is kept of a login.
type Login struct {
	Address string // of the gateway, as it was given
	CA      string `json:",omitempty"` // path of a file with the CA that it is signed by, "" for the system's

	// Secret is the refresh token, or the API key. It is empty if InKeychain is set, or if the issuer
	// gave no refresh token.
	Secret     string `json:",omitempty"`
	InKeychain bool   `json:",omitempty"`

	// The rest is empty for an API key.

	Client    Client
	TokenURL  string    `json:",omitempty"`
	RevokeURL string    `json:",omitempty"` // "" if the issuer revokes no tokens
	Token     string    `json:",omitempty"`
	RenewAt   time.Time // half of the token's life: whoever gets it can use it for the other half
	EndsAt    time.Time
}

func (l *Login) isKey() bool { return l.TokenURL == "" }

// File has all logins of a user.
type File struct{ path string }

// Open returns the file of the user. It need not exist.
func Open() (File, error) {
	dir, err := os.UserConfigDir()
	return File{filepath.Join(dir, "weir", "login.json")}, err
}

// NoLoginError is the error for a gateway at which the user has not logged in, or not any more.
type NoLoginError struct {
	Address string // "" for any gateway
	Reason  error  // nil if there is no login
}

func (e *NoLoginError) Error() string {
	if e.Address == "" {
		return "you are not logged in: run `weir login https://…` with the address of your gateway"
	}
	if e.Reason != nil {
		return fmt.Sprintf("your login at %s has ended (%v): run `weir login %[1]s`", e.Address, e.Reason)
	}
	return fmt.Sprintf("you are not logged in at %s: run `weir login %[1]s`", e.Address)
}

func (e *NoLoginError) Unwrap() error { return e.Reason }

// read returns the logins, the latest first.
func (f File) read() (all []Login, err error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it, and log in again", f.path, err)
	}
	return all, nil
}

// Find returns the login at an address, and the latest one for "". The error is NoLoginError if there is
// none.
func (f File) Find(address string) (Login, error) {
	all, err := f.read()
	if err != nil {
		return Login{}, err
	}
	for _, l := range all {
		if address == "" || l.Address == address {
			return l, nil
		}
	}
	return Login{}, &NoLoginError{Address: address}
}

// lock waits until no other process changes the file.
func (f File) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return nil, err
	}
	l := flock.New(f.path+".lock", flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Path(), err)
	}
	return func() { _ = l.Unlock() }, nil
}

// write replaces the file. The lock is held.
func (f File) write(all []Login) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return disk.Replace(f.path, text, 0o600)
}

// Keep keeps a login in place of an earlier one at the same address.
func (f File) Keep(ctx context.Context, l Login) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return f.put(l, true)
}

// put keeps a login: as the latest one, or in the place that it has. The lock is held.
func (f File) put(l Login, latest bool) error {
	all, err := f.read()
	if err != nil {
		return err
	}
	l.hide()
	i := slices.IndexFunc(all, func(a Login) bool { return a.Address == l.Address })
	switch {
	case i >= 0 && !latest:
		all[i] = l
	case i >= 0:
		all = slices.Delete(all, i, i+1)
		fallthrough
	default:
		all = slices.Insert(all, 0, l)
	}
	return f.write(all)
}

// Forget forgets a login, and asks the issuer to revoke its refresh token. It reports whether the
// token can be used no more.
func (f File) Forget(ctx context.Context, l Login, client *http.Client) (revoked bool, err error) {
	unlock, err := f.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	all, err := f.read()
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(all, func(a Login) bool { return a.Address == l.Address })
	if i < 0 {
		return false, nil
	}
	l = all[i] // another process may have renewed it
	// Before the login is gone: a keychain that is locked would keep a secret that nobody knows of.
	secret, err := l.secret()
	if err != nil && !errors.As(err, new(*NoLoginError)) {
		return false, err
	}
	if err := f.write(slices.Delete(all, i, i+1)); err != nil {
		return false, err
	}
	if err == nil && l.InKeychain {
		err = keyring.Delete(keychainService, l.Address)
	}
	return l.revoke(ctx, secret, client), err
}
