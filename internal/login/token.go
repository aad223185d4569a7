package login

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// renewTimeout is how long a caller waits for a new token at most, in which an agent waits.
const renewTimeout = 20 * time.Second

// Fresh returns a token of a login with at least half of its life before it. Of several processes,
// one renews it.
func (f File) Fresh(ctx context.Context, address string, client *http.Client) (string, error) {
	l, err := f.Find(address)
	switch {
	case err != nil:
		return "", err
	case l.isKey():
		return l.secret()
	case time.Now().Before(l.RenewAt):
		return l.Token, nil
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	unlock, err := f.lock(ctx)
	if err != nil {
		if time.Now().Before(l.EndsAt) { // whoever has the lock waits for the issuer
			return l.Token, nil
		}
		return "", err
	}
	defer unlock()
	if l, err = f.Find(l.Address); err != nil || l.isKey() || time.Now().Before(l.RenewAt) { // another process has renewed it, or logged in anew
		if err == nil && l.isKey() {
			return l.secret()
		}
		return l.Token, err
	}
	err = l.renew(ctx, client)
	if time.Now().Before(l.EndsAt) { // also if the issuer is away, or gives no refresh tokens
		err = nil
	}
	return l.Token, errors.Join(err, f.put(l, false))
}
