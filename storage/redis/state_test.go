package redis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/redis/rueidis"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/testkit/sharedtest"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/shared"
)

func TestSharedContract(t *testing.T) {
	s := start(t)
	t.Run("memory", func(t *testing.T) {
		sharedtest.Memory(t, func() (a, b shared.Memory) {
			o := s.options()
			return openState(t, o).Memory(), openState(t, o).Memory()
		})
	})
	t.Run("breakers", func(t *testing.T) {
		sharedtest.Breakers(t, func() (a, b shared.Breakers) {
			o := s.options()
			return openState(t, o).Breakers(), openState(t, o).Breakers()
		})
	})
	t.Run("affinity", func(t *testing.T) {
		o := s.options()
		a, b := openState(t, o), openState(t, o)
		eventually(t, func() bool { return a.client.answers.Load() && b.client.answers.Load() })
		sharedtest.Affinity(t, a.Affinity(), b.Affinity())
	})
	t.Run("runs", func(t *testing.T) {
		o := s.options()
		a, b := openState(t, o), openState(t, o)
		eventually(t, func() bool { return !a.ledger.wasAway() && !b.ledger.wasAway() })
		sharedtest.Runs(t, a.Runs(), b.Runs(), func(run shared.Key) {
			do(t, a.client.do(t.Context(), func(ctx context.Context, server rueidis.Client) error {
				key := (&runs{client: a.client}).keys(run)[0]
				return server.Do(ctx, server.B().Hincrby().Key(key).Field("seen").Increment(-2*a.client.Lease.Milliseconds()).Build()).Error()
			}))
		})
	})
}

// value is what a node remembers under a key of that name.
func value(t testing.TB, s *State, name string) string {
	t.Helper()
	return string(s.Memory().Get(t.Context(), []shared.Key{sharedtest.Key(name)})[0])
}

func put(t testing.TB, s *State, name, value string) {
	t.Helper()
	s.Memory().Put(t.Context(), sharedtest.Key(value), []byte(value), []shared.Key{sharedtest.Key(name)})
}

// While Redis is dead, a node goes on with what it knows itself, waits for nothing, and
// counts that. When Redis is back, it is shared again, with what was there.
func TestAlone(t *testing.T) {
	server := start(t)
	o := server.options()
	var memory, breakers atomic.Int64
	o.Alone = func(part string) { map[string]*atomic.Int64{"memory": &memory, "breakers": &breakers}[part].Add(1) }
	a, b := openState(t, o), openState(t, o)
	put(t, a, "before", "1")
	bad, worse := sharedtest.Key("bad"), sharedtest.Key("worse")
	for range shared.MaxFailures {
		a.Breakers().Failed(bad)
	}
	eventually(t, func() bool { return b.Breakers().Open(bad) })

	server.kill()
	put(t, a, "meanwhile", "2")
	began := time.Now()
	for range 1000 {
		if got := value(t, a, "meanwhile") + value(t, a, "before"); got != "21" {
			t.Fatalf("the node that put them has %q", got)
		}
	}
	if took := time.Since(began); took > o.Timeout {
		t.Errorf("2000 uses of the memory took %s", took)
	}
	if got := value(t, b, "before") + value(t, b, "meanwhile"); got != "" {
		t.Errorf("the other node has %q", got)
	}
	for range shared.MaxFailures {
		a.Breakers().Failed(worse)
	}
	if !a.Breakers().Open(bad) || !a.Breakers().Open(worse) || !b.Breakers().Open(bad) {
		t.Error("circuits are closed because Redis is dead")
	}
	eventually(t, func() bool { return breakers.Load() >= 1 })
	if memory.Load() < 2002 {
		t.Errorf("%d uses are counted", memory.Load())
	}

	server.run()
	eventually(t, func() bool { return value(t, b, "before") == "1" && b.Breakers().Open(worse) })
	eventually(t, a.client.answers.Load)
	put(t, a, "after", "3")
	if got := value(t, b, "after") + value(t, a, "meanwhile"); got != "32" {
		t.Errorf("when Redis is back the nodes have %q", got)
	}
}

// A server that accepts commands and does not answer delays no more than the calls that
// are waiting for it.
func TestHangingServer(t *testing.T) {
	server := start(t)
	o := server.options()
	o.Timeout = 50 * time.Millisecond
	s := openState(t, o)
	put(t, s, "a", "1")
	server.pause(true)
	defer server.pause(false)
	began := time.Now()
	for range 1000 {
		if got := value(t, s, "a"); got != "1" {
			t.Fatalf("the node has %q", got)
		}
	}
	if took := time.Since(began); took > 20*o.Timeout {
		t.Errorf("1000 uses of the memory took %s", took)
	}
}

// A server that answers late is waited for: no call is refused because it was busy.
func TestBusyServer(t *testing.T) {
	server := start(t)
	o := server.options()
	o.Timeout = 0 // the default
	l := open(t, o)
	do(t, l.Grant(t.Context(), "acme", 100))
	server.pause(true)
	time.AfterFunc(800*time.Millisecond, func() { server.pause(false) })
	do(t, l.Reserve(t.Context(), of(1)))
}

// Calls do not wait for one another, nor each for itself, when a server that does not
// answer is known not to.
func TestHangingServerRefusesAtOnce(t *testing.T) {
	server := start(t)
	o := server.options()
	o.Timeout = 100 * time.Millisecond
	l := open(t, o)
	do(t, l.Grant(t.Context(), "acme", 100))
	server.pause(true)
	defer server.pause(false)
	began := time.Now()
	for range 200 {
		if err := l.Reserve(t.Context(), of(1)); !errors.Is(err, credits.ErrUnavailable) {
			t.Fatalf("Reserve = %v", err)
		}
	}
	if took := time.Since(began); took > 20*o.Timeout {
		t.Errorf("200 calls were refused within %s", took)
	}
	server.pause(false)
	eventually(t, func() bool { return l.Reserve(t.Context(), of(1)) == nil })
}

// What nodes remember is bounded: what was not used for the longest time goes first,
// and nothing of it stays.
func TestMemoryIsBounded(t *testing.T) {
	s := openState(t, start(t).options())
	const bound = 8 << 20
	s.memory.max = bound
	size := func() (all int64, keys int64) {
		do(t, s.client.do(t.Context(), func(ctx context.Context, server rueidis.Client) (err error) {
			if all, err = server.Do(ctx, server.B().Get().Key(s.client.key("memory:bytes")).Build()).AsInt64(); err != nil {
				return err
			}
			keys, err = server.Do(ctx, server.B().Dbsize().Build()).AsInt64()
			return err
		}))
		return all, keys
	}
	value := make([]byte, shared.MaxValue)
	var keys []shared.Key
	for i := range 2 * bound / len(value) {
		binary.LittleEndian.PutUint64(value, uint64(i))
		k := sharedtest.Key(string(value[:8]))
		keys = append(keys, k)
		s.memory.local = shared.LocalMemory{}
		s.Memory().Put(t.Context(), k, value, []shared.Key{k, sharedtest.Key(string(value[:9]))})
	}
	all, names := size()
	if kept := bound / len(value); all > bound || all < bound/2 || names > int64(3*kept+20) {
		t.Errorf("%d bytes are kept, in %d keys", all, names)
	}
	s.memory.local = shared.LocalMemory{}
	if s.Memory().Get(t.Context(), keys[len(keys)-1:])[0] == nil || s.Memory().Get(t.Context(), keys[:1])[0] != nil {
		t.Error("not the oldest values are forgotten")
	}
}

// What is used stays, and what is old is forgotten, with its size.
func TestMemoryIsRefreshed(t *testing.T) {
	s := openState(t, start(t).options())
	put(t, s, "used", "1")
	s.memory.local = shared.LocalMemory{}
	left := func(command func(rueidis.Client) rueidis.Completed) (n int64) {
		do(t, s.client.do(t.Context(), func(ctx context.Context, server rueidis.Client) (err error) {
			n, err = server.Do(ctx, command(server)).AsInt64()
			return err
		}))
		return n
	}
	key := s.memory.names([]shared.Key{sharedtest.Key("used")})[0]
	entry := s.client.key("memory:value:" + text(sharedtest.Key("1")))
	for _, name := range []string{key, entry} {
		left(func(server rueidis.Client) rueidis.Completed {
			return server.B().Pexpire().Key(name).Milliseconds(10_000).Build()
		})
	}
	if got := value(t, s, "used"); got != "1" {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{key, entry} {
		if n := left(func(server rueidis.Client) rueidis.Completed { return server.B().Pttl().Key(name).Build() }); n < 7_000_000 {
			t.Errorf("%s has %d ms left", name, n)
		}
	}
	// The value has expired two hours later: the next one takes its size away.
	left(func(server rueidis.Client) rueidis.Completed { return server.B().Del().Key(key, entry).Build() })
	left(func(server rueidis.Client) rueidis.Completed {
		return server.B().Zincrby().Key(s.client.key("memory")).Increment(-float64(memoryAge.Milliseconds()) - 1).Member(text(sharedtest.Key("1")) + ":501").Build()
	})
	put(t, s, "next", "2")
	if n := left(func(server rueidis.Client) rueidis.Completed {
		return server.B().Get().Key(s.client.key("memory:bytes")).Build()
	}); n != 501 {
		t.Errorf("%d bytes are counted", n)
	}
}

// Uses without Redis are counted in the metric.
func TestMetric(t *testing.T) {
	s := &Shared{URL: "redis://127.0.0.1:1"}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	do(t, s.Provision(ctx))
	state, err := s.Open("default", t.TempDir(), zap.NewNop())
	do(t, err)
	defer state.Close(context.Background())
	state.Memory().Get(t.Context(), []shared.Key{{}})
	metrics, err := ctx.GetMetricsRegistry().Gather()
	do(t, err)
	if !strings.Contains(fmt.Sprint(metrics), "weir_shared_alone_total") {
		t.Errorf("the metrics are %s", metrics)
	}
}
