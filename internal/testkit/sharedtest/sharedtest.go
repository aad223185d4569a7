// Package sharedtest tests implementations of package shared. Package creditstest tests
// the credits.
package sharedtest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/storage/shared"
)

// Key is the key of a text.
func Key(text string) shared.Key { return sha256.Sum256([]byte(text)) }

// Affinity checks a kind of Affinity, as two nodes see it, which is empty.
func Affinity(t *testing.T, a, b shared.Affinity) {
	recall := func(at shared.Affinity, conversations ...string) string {
		var keys []shared.Key
		for _, c := range conversations {
			keys = append(keys, Key(c))
		}
		value, n := at.Recall(t.Context(), keys)
		return fmt.Sprintf("%s %d", value, n)
	}
	expect := func(want string, conversations ...string) {
		t.Helper()
		for _, at := range []shared.Affinity{a, b} {
			deadline := time.Now().Add(10 * time.Second)
			for recall(at, conversations...) != want && time.Now().Before(deadline) {
				time.Sleep(time.Millisecond)
			}
			if got := recall(at, conversations...); got != want {
				t.Errorf("of %q a node knows %q, want %q", conversations, got, want)
			}
		}
	}
	expect(" -1")
	expect(" -1", "x", "y")
	a.Remember(Key("x"), []byte("east\x00\xff"), time.Hour)
	expect("east\x00\xff 0", "x")
	expect("east\x00\xff 2", "unknown", "y", "x")
	b.Remember(Key("y"), []byte("west"), time.Hour)
	expect("west 1", "unknown", "y", "x")
	b.Remember(Key("x"), []byte("south"), time.Hour)
	expect("south 0", "x", "y")
	a.Remember(Key("y"), []byte("gone"), time.Millisecond)
	expect(" -1", "y")
}

// Memory checks a kind of Memory. nodes makes a new, empty Memory, and returns it as two
// nodes see it; a and b are the same value where there is a single node.
func Memory(t *testing.T, nodes func() (a, b shared.Memory)) {
	a, b := nodes()
	put := func(m shared.Memory, value string, keys ...string) {
		var all []shared.Key
		for _, k := range keys {
			all = append(all, Key(k))
		}
		m.Put(t.Context(), Key(value), []byte(value), all)
	}
	get := func(keys ...string) (found []string) {
		t.Helper()
		var all []shared.Key
		for _, k := range keys {
			all = append(all, Key(k))
		}
		here, there := a.Get(t.Context(), all), b.Get(t.Context(), all)
		if !slices.EqualFunc(here, there, bytes.Equal) || len(here) != len(keys) {
			t.Errorf("%q: one node has %q, the other %q", keys, here, there)
		}
		for i, value := range here {
			if value == nil {
				found = append(found, "nothing")
			} else {
				found = append(found, string(there[i]))
			}
		}
		return found
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}

	expect("no key", get())
	expect("an unknown key", get("a"), "nothing")
	put(a, "one", "a", "b", "c")
	expect("the keys of a value, and another", get("b", "unknown", "a", "b"), "one", "nothing", "one", "one")
	put(b, "one", "a")
	expect("the same value again", get("a"), "one")
	for range 2 {
		put(b, "two", "b", "d")
		expect("a key of two values", get("a", "b", "c", "d"), "one", "nothing", "one", "two")
	}
	put(a, "one", "b")
	expect("a key of two values, again", get("b"), "nothing")
	put(a, "\x00\xff\r\n{", "binary")
	expect("a binary value", get("binary"), "\x00\xff\r\n{")
	large := string(bytes.Repeat([]byte("x"), shared.MaxValue))
	put(a, large, "large")
	put(a, large+"x", "too large")
	if got := get("large", "too large"); got[0] != large || got[1] != "nothing" {
		t.Errorf("values of the largest size, and above: %d and %d bytes", len(got[0]), len(got[1]))
	}
	put(a, "without a key")

	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() { put(a, fmt.Sprint(i), fmt.Sprint("own ", i), "common") })
	}
	group.Wait()
	expect("a key of values of the same time", get("common", "own 7"), "nothing", "7")
}

// Breakers checks a kind of Breakers. nodes makes new Breakers, and returns them as two
// nodes see them; a and b are the same value where there is a single node.
func Breakers(t *testing.T, nodes func() (a, b shared.Breakers)) {
	a, b := nodes()
	bad, good := Key("bad"), Key("good")
	eventually := func(what string, want bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); a.Open(bad) != want || b.Open(bad) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: open at one node: %t, at the other: %t", what, a.Open(bad), b.Open(bad))
			}
		}
	}
	for range 2 {
		for range shared.MaxFailures {
			if a.Open(bad) || b.Open(bad) {
				t.Fatal("it is open before it has failed often enough")
			}
			a.Failed(bad)
		}
		if !a.Open(bad) {
			t.Error("it is not open at once at the node that has seen the failures")
		}
		eventually("failed", true)
		a.Failed(bad)
		eventually("failed once more", true)
		b.Succeeded(bad)
		if b.Open(bad) {
			t.Error("it is not closed at once at the node that has seen the success")
		}
		for a.Open(bad) { // the failure may come after the success
			b.Succeeded(bad)
			time.Sleep(time.Millisecond)
		}
		eventually("succeeded", false)
		a.Succeeded(bad) // forgets the failures that it counted
	}
	for range shared.MaxFailures - 1 {
		a.Failed(good)
		b.Succeeded(good)
	}
	if a.Open(good) || b.Open(good) {
		t.Error("another circuit is open")
	}
}
