package redis

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/testkit/controltest"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

func TestControlContract(t *testing.T) {
	s := start(t)
	controltest.Run(t, func(t testing.TB) controltest.Place {
		o := s.options()
		return controltest.Place{Open: func() (control.Log, error) {
			n := openState(t, o)
			return n.Control(), nil
		}}
	})
}

// checker answers, as a node does, which secrets open something: from what it has read under a
// version, or from the log.
type checker struct {
	log     control.Log
	mu      sync.Mutex
	version uint64
	known   map[control.Hash]*control.Key
}

func (c *checker) opens(secret string) (bool, error) {
	hash := control.Hash(sha256.Sum256([]byte(secret)))
	version := c.log.Version()
	c.mu.Lock()
	key := c.known[hash]
	if c.version != version || !c.log.Trusted() {
		key = nil
	}
	c.mu.Unlock()
	if key == nil {
		var err error
		if key, _, err = control.FindKey(context.Background(), c.log, hash); errors.Is(err, control.ErrNotFound) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		c.mu.Lock()
		if c.version != version || c.known == nil {
			c.version, c.known = version, make(map[control.Hash]*control.Key)
		}
		c.known[hash] = key
		c.mu.Unlock()
	}
	return key.Opens(hash, storage.Millis(time.Now())), nil
}

// While a key is rotated again and again, and Redis is killed and comes back, no node refuses a
// secret within its overlap, and no node takes a secret a second after its end.
func TestRotationWhileRedisDies(t *testing.T) {
	server := start(t)
	o := server.options()
	var nodes []*checker
	for range 3 {
		o.File += "+" // which is one node's alone
		nodes = append(nodes, &checker{log: openState(t, o).Control()})
	}
	acme := &control.Organisation{Log: nodes[0].log, Name: "acme"}
	const overlap = 2 * time.Second
	k, secret, err := acme.CreateKey(t.Context(), control.Settings{Name: "x", Scopes: []string{"gateway"}})
	do(t, err)
	type made struct {
		secret string
		since  time.Time
		until  atomic.Int64 // Unix nanoseconds at which the overlap ends, 0 for never
	}
	var mu sync.Mutex
	secrets := []*made{{secret: secret, since: time.Now()}}
	var calls, refused, passed atomic.Int64
	stop := make(chan struct{})
	var group sync.WaitGroup
	for n := range 9 {
		node := nodes[n%len(nodes)]
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond):
				}
				mu.Lock()
				all := secrets[max(0, len(secrets)-4):]
				mu.Unlock()
				for _, m := range all {
					began := time.Now()
					until := m.until.Load()
					opens, err := node.opens(m.secret)
					ended := time.Now()
					calls.Add(1)
					switch {
					case !opens && ended.Sub(m.since) > 0 && (until == 0 && m.until.Load() == 0 || ended.UnixNano() < until):
						refused.Add(1)
						t.Errorf("a secret within its overlap is refused: %v", err)
					case opens && until != 0 && began.UnixNano() > until+int64(time.Second):
						passed.Add(1)
						t.Error("a secret opens a second after its end")
					}
				}
			}
		})
	}
	for round := range 8 {
		if round%3 == 1 { // the nodes know the secrets
			server.kill()
			time.Sleep(500 * time.Millisecond)
			server.run()
		}
		var next string
		var ends time.Time
		eventually(t, func() bool {
			ends = time.Now().Truncate(time.Millisecond).Add(overlap) // in which keys count
			_, next, err = acme.RotateKey(t.Context(), k.ID, overlap)
			return err == nil
		})
		mu.Lock()
		for _, m := range secrets {
			m.until.CompareAndSwap(0, ends.UnixNano())
		}
		secrets = append(secrets, &made{secret: next, since: time.Now()})
		mu.Unlock()
		time.Sleep(overlap / 2)
	}
	close(stop)
	group.Wait()
	t.Logf("%d calls, %d refused, %d passed", calls.Load(), refused.Load(), passed.Load())
	if calls.Load() < 1000 {
		t.Errorf("%d calls prove nothing", calls.Load())
	}
}

// A change is in force at another node within a second, and a node that Redis does not answer
// trusts what it has read for no longer than it says.
func TestControlTrust(t *testing.T) {
	server := start(t)
	o := server.options()
	a := openState(t, o).Control()
	o.File += "+"
	second := openState(t, o)
	b := &checker{log: second.Control()}
	acme := &control.Organisation{Log: a, Name: "acme"}
	k, secret, err := acme.CreateKey(t.Context(), control.Settings{Scopes: []string{"gateway"}})
	do(t, err)
	if opens, err := b.opens(secret); !opens {
		t.Fatal(err)
	}
	do(t, control.Delete[control.Key](t.Context(), acme, k.ID))
	time.Sleep(time.Second)
	if opens, _ := b.opens(secret); opens {
		t.Error("a key that is deleted opens at another node after a second")
	}
	_, secret, err = acme.CreateKey(t.Context(), control.Settings{Scopes: []string{"gateway"}})
	do(t, err)
	time.Sleep(time.Second)
	if opens, err := b.opens(secret); !opens {
		t.Fatal(err)
	}
	server.kill()
	if opens, err := b.opens(secret); !opens {
		t.Errorf("a key that the node knows is refused at once: %v", err)
	}
	second.control.known.Store(time.Now().Add(-controlTrust - time.Second).UnixNano())
	if opens, err := b.opens(secret); opens || err == nil {
		t.Errorf("a node trusts what it has read before: %t, %v", opens, err)
	}
	server.run()
	eventually(t, func() bool { opens, _ := b.opens(secret); return opens })
}

// A Redis that has lost changes opens nothing that they have closed.
func TestControlLoss(t *testing.T) {
	server := start(t)
	state := openState(t, server.options())
	log := state.Control()
	acme := &control.Organisation{Log: log, Name: "acme"}
	_, secret, err := acme.CreateKey(t.Context(), control.Settings{Scopes: []string{"gateway"}})
	do(t, err)
	redis := *state.client.server.Load()
	do(t, redis.Do(t.Context(), redis.B().Set().Key(state.client.key("control:version")).Value("0").Build()).Error())
	_, _, err = control.FindKey(t.Context(), log, sha256.Sum256([]byte(secret)))
	if refused, ok := errors.AsType[*rueidis.RedisError](err); !ok || errors.Is(err, control.ErrNotFound) {
		t.Errorf("an older copy of Redis's data is read: %v", refused)
	}
}

// A node hears that a member was added, changed or removed at another: what it has read under a
// version is asked for again.
func TestMembersOfManyNodes(t *testing.T) {
	o := start(t).options()
	here, there := openState(t, o).Control(), openState(t, o).Control()
	org := &control.Organisation{Log: here, Name: "acme", By: control.Actor{Key: "admin"}}
	other := &control.Organisation{Log: there, Name: "acme"}
	role := func() string {
		m, err := control.Named[control.Member](t.Context(), other, "ada@example.com")
		if errors.Is(err, control.ErrNotFound) {
			return ""
		}
		if err != nil {
			t.Fatal(err)
		}
		return m.Role
	}
	becomes := func(want string, change func() error) {
		t.Helper()
		before := there.Version()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for ; there.Version() == before || role() != want; time.Sleep(time.Millisecond) {
			if time.Since(began) > 10*time.Second {
				t.Fatalf("the other node hears of nothing, and the role there is %q, not %q", role(), want)
			}
		}
		t.Log("the other node knows after", time.Since(began))
	}
	var m *control.Member
	becomes(control.Reader, func() (err error) {
		m, err = org.AddMember(t.Context(), control.Member{Email: "ada@example.com", Role: control.Reader})
		return err
	})
	becomes(control.Owner, func() error {
		_, err := control.Update(t.Context(), org, m.ID, func(m *control.Member) error {
			m.Role = control.Owner
			return nil
		})
		return err
	})
	becomes("", func() error { return control.DeleteOwner[control.Member](t.Context(), org, m.ID) })
}
