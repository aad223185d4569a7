package llmui

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"github.com/weirhq/weir/modules/internal/access/identity"
	"github.com/weirhq/weir/modules/internal/paths"
)

const (
	// idleLimit and ageLimit end a session that nobody uses, and any other.
	idleLimit = 12 * time.Hour
	ageLimit  = 7 * 24 * time.Hour

	// maxFailures is how many wrong keys an address may send in a minute.
	maxFailures = 5
)

// sessions are the logged-in browsers of the process. They outlive a reload of
// the configuration; a session whose key is no longer configured ends.
var sessions = struct {
	sync.Mutex
	byToken  map[[sha256.Size]byte]*session
	failures map[string][]time.Time // by address
}{byToken: make(map[[sha256.Size]byte]*session), failures: make(map[string][]time.Time)}

// session is one logged-in browser. The token itself is in its cookie alone.
type session struct {
	key         string          // the hash of the API key, "" if an issuer has named the person
	bearer      identity.Claims // what the issuer says
	began, used time.Time
}

// begin begins a session and returns the token for its cookie.
func begin(s session, now time.Time) (token string) {
	token = rand.Text() + rand.Text() // 260 bits
	sessions.Lock()
	defer sessions.Unlock()
	for hash, other := range sessions.byToken {
		if other.over(now) {
			delete(sessions.byToken, hash)
		}
	}
	s.began, s.used = now, now
	sessions.byToken[sha256.Sum256([]byte(token))] = &s
	return token
}

// sessionOf returns the session of a token, false if there is none.
func sessionOf(token string, now time.Time) (session, bool) {
	sessions.Lock()
	defer sessions.Unlock()
	s := sessions.byToken[sha256.Sum256([]byte(token))]
	if s == nil || s.over(now) {
		return session{}, false
	}
	s.used = now
	return *s, true
}

// over reports whether a session has ended. The claims of an issuer may change: a session
// that rests on them ends sooner.
func (s *session) over(now time.Time) bool {
	limit := ageLimit
	if s.key == "" {
		limit = idleLimit
	}
	return now.Sub(s.used) > idleLimit || now.Sub(s.began) > limit
}

// end ends the session of a token.
func end(token string) {
	sessions.Lock()
	defer sessions.Unlock()
	delete(sessions.byToken, sha256.Sum256([]byte(token)))
}

// mayTry reports whether an address may try another key, and failed counts a key
// that was wrong.
func mayTry(address string, now time.Time) bool {
	sessions.Lock()
	defer sessions.Unlock()
	for address, times := range sessions.failures {
		if now.Sub(times[len(times)-1]) > time.Minute {
			delete(sessions.failures, address)
		}
	}
	times := sessions.failures[address]
	return len(times) < maxFailures || now.Sub(times[len(times)-maxFailures]) > time.Minute
}

// noteFailure counts a failed login of an address.
func noteFailure(address string, now time.Time) {
	sessions.Lock()
	defer sessions.Unlock()
	times := append(sessions.failures[address], now)
	sessions.failures[address] = times[max(0, len(times)-maxFailures):]
}

// cookieName begins with __Host- where there is TLS: the prefix needs TLS.
func cookieName(r *http.Request) string {
	if paths.Secure(r) {
		return "__Host-weir"
	}
	return "weir"
}

// cookie is the session's: scripts cannot read it, other sites cannot send it.
func cookie(r *http.Request, token string, age time.Duration) *http.Cookie {
	c := &http.Cookie{
		Name: cookieName(r), Value: token, Path: "/", MaxAge: int(age.Seconds()),
		HttpOnly: true, Secure: paths.Secure(r), SameSite: http.SameSiteStrictMode,
	}
	if age < 0 {
		c.MaxAge = -1
	}
	return c
}

// token returns the token in the request's cookie, "" without a cookie.
func token(r *http.Request) string {
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return ""
	}
	return c.Value
}
