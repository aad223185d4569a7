package shared_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/testkit/sharedtest"
	"github.com/weirhq/weir/storage/shared"
)

func TestContract(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		sharedtest.Memory(t, func() (a, b shared.Memory) {
			m := new(shared.LocalMemory)
			return m, m
		})
	})
	t.Run("breakers", func(t *testing.T) {
		sharedtest.Breakers(t, func() (a, b shared.Breakers) {
			all := new(shared.LocalBreakers)
			return all, all
		})
	})
	t.Run("affinity of a test", func(t *testing.T) {
		all := new(sharedtest.LocalAffinity)
		sharedtest.Affinity(t, all, all)
	})
	t.Run("runs of a test", func(t *testing.T) {
		all := &sharedtest.LocalRuns{Lease: time.Minute}
		sharedtest.Runs(t, all, all, func(shared.Key) { all.Age(2 * all.Lease) })
	})
}

// What is asked for stays; what is old is forgotten.
func TestValuesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m shared.LocalMemory
		put := func(text string) {
			m.Put(t.Context(), sharedtest.Key(text), []byte(text), []shared.Key{sharedtest.Key(text)})
		}
		known := func(text string) bool { return m.Get(t.Context(), []shared.Key{sharedtest.Key(text)})[0] != nil }
		put("one")
		for range 3 {
			time.Sleep(45 * time.Minute)
			put(time.Now().String())
			if !known("one") {
				t.Error("what is asked for is forgotten")
			}
		}
		for range 2 {
			time.Sleep(61 * time.Minute)
			put(time.Now().String())
		}
		if known("one") {
			t.Error("what is old is not forgotten")
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	const bound = 64 << 20
	var m shared.LocalMemory
	value := make([]byte, shared.MaxValue)
	var keys []shared.Key
	for i := range 3 * bound / len(value) {
		keys = append(keys, sharedtest.Key(fmt.Sprint(i)))
		m.Put(t.Context(), keys[i], value, keys[i:])
	}
	if m.Get(t.Context(), keys[len(keys)-1:])[0] == nil {
		t.Error("the last value is not kept")
	}
	kept := 0
	for i := range keys { // those that are asked for take the place of others
		if m.Get(t.Context(), keys[len(keys)-1-i:][:1])[0] != nil {
			kept += len(value)
		}
	}
	if kept > bound || kept < bound/4 {
		t.Errorf("%d bytes are kept", kept)
	}
}

// A circuit is open for a while after failures that came close together.
func TestCircuitsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b shared.LocalBreakers
		bad := sharedtest.Key("bad")
		for range shared.MaxFailures {
			b.Failed(bad)
			time.Sleep(time.Second)
		}
		if !b.Open(bad) {
			t.Error("it is closed in its cooldown")
		}
		time.Sleep(shared.Cooldown)
		if b.Open(bad) {
			t.Error("it is open after its cooldown")
		}
		b.Succeeded(bad)
		for range shared.MaxFailures {
			b.Failed(bad)
			if b.Open(bad) {
				t.Error("it is open with seldom failures")
			}
			time.Sleep(shared.Cooldown)
		}
	})
}

// Clients choose the names of models: those that fail take bounded memory, and old ones
// make room.
func TestCircuitsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b shared.LocalBreakers
		fails := func(text string) bool {
			for range shared.MaxFailures {
				b.Failed(sharedtest.Key(text))
			}
			return b.Open(sharedtest.Key(text))
		}
		for i := range shared.MaxCircuits {
			if !fails(fmt.Sprint(i)) {
				t.Fatalf("circuit %d is not watched", i)
			}
		}
		if fails("late") {
			t.Error("more circuits are watched than there is room for")
		}
		time.Sleep(shared.Cooldown + time.Second)
		if !fails("late") {
			t.Error("old failures make no room")
		}
	})
}
