// Package storestest is for tests of what has stores open.
package storestest

import (
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/modules/internal/stores"
)

// closeTimeout bounds how long the calls in flight may keep a store open.
const closeTimeout = 20 * time.Second

// Stop stops Caddy, and waits until its stores are closed: Caddy lets calls in flight end in the
// background, and the last one closes the store.
func Stop(t testing.TB) {
	t.Helper()
	open := stores.InUse()
	if err := caddy.Stop(); err != nil {
		t.Error(err)
	}
	for _, s := range open {
		for begun := time.Now(); s.Opened() != nil; time.Sleep(time.Millisecond) {
			if time.Since(begun) > closeTimeout {
				t.Errorf("the store %s stays open", s.Name())
				break
			}
		}
	}
}
