package identity

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// askTimeout bounds how long an answer of the issuer may take.
	askTimeout = 5 * time.Second
	// askAgain is how long the issuer's keys are not asked for again: a token with an
	// unknown key makes Weir ask, and everybody can send such tokens.
	askAgain = 5 * time.Second
)

// errAsked means that the issuer was asked a moment ago.
var errAsked = errors.New("the keys of the issuer were read a moment ago")

// source reads what an issuer publishes: each of its documents at most once in askAgain.
type source struct {
	through http.RoundTripper

	mu     sync.Mutex           // guards the fields below
	asked  map[string]time.Time // by URL
	failed error                // by which the last answer failed, nil if it did not
}

// RoundTrip implements http.RoundTripper.
func (s *source) RoundTrip(r *http.Request) (*http.Response, error) {
	url := r.URL.String()
	s.mu.Lock()
	failed := s.failed
	early := time.Since(s.asked[url]) < askAgain
	if !early {
		if s.asked == nil {
			s.asked = make(map[string]time.Time)
		}
		s.asked[url] = time.Now()
	}
	s.mu.Unlock()
	if early {
		return nil, errors.Join(failed, errAsked)
	}
	answer, err := s.through.RoundTrip(r)
	failed = err
	if err == nil && answer.StatusCode != http.StatusOK {
		failed = fmt.Errorf("%s answers %s", url, answer.Status)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = failed
	return answer, err
}

// failure returns why the issuer's last answer failed, nil if it did not.
func (s *source) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}
