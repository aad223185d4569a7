package sharedtest

import (
	"context"
	"sync"
	"time"

	"github.com/weirhq/weir/storage/shared"
)

// LocalAffinity is an Affinity of the nodes of a test. The zero value is empty.
type LocalAffinity struct {
	mu     sync.Mutex // guards places
	places map[shared.Key]localPlace
}

type localPlace struct {
	value []byte
	until time.Time
}

// Remember implements shared.Affinity.
func (a *LocalAffinity) Remember(conversation shared.Key, value []byte, life time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.places == nil {
		a.places = make(map[shared.Key]localPlace)
	}
	a.places[conversation] = localPlace{value, time.Now().Add(life)}
}

// Recall implements shared.Affinity.
func (a *LocalAffinity) Recall(_ context.Context, conversations []shared.Key) (value []byte, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, c := range conversations {
		if p, ok := a.places[c]; ok && time.Now().Before(p.until) {
			return p.value, i
		}
	}
	return nil, -1
}

// Interface guards
var _ shared.Affinity = (*LocalAffinity)(nil)
