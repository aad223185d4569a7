package keys

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/storage"
)

// TestMain changes keys until it is killed where a test asks for that.
func TestMain(m *testing.M) {
	if dir := os.Getenv("KEYS_TEST_DIR"); dir != "" {
		changeForEver(dir)
	}
	os.Exit(m.Run())
}

func open(t testing.TB, dir string) *Log {
	t.Helper()
	l, err := Open(dir, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

var somebody = Actor{Key: "key_admin", Address: "192.0.2.1"}

func hashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// Whatever is done to keys, also across restarts, the log has the keys of a map, opens what
// they open, and its events lead from one to the next.
func TestChanges(t *testing.T) {
	ctx := t.Context()
	memory, err := os.MkdirTemp("/dev/shm", "keys")
	if err != nil {
		memory = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(memory) })
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(memory, "")
		if err != nil {
			rt.Fatal(err)
		}
		l := open(t, dir)
		keys := make(map[string]*Key)
		secrets := make(map[string]string) // the id by the secret
		events := 0
		orgs := []string{"acme", "globex"}
		some := func() *Key {
			if len(keys) == 0 {
				rt.Skip()
			}
			return keys[rapid.SampledFrom(slices.Sorted(maps.Keys(keys))).Draw(rt, "key")]
		}
		must := func(err error) {
			rt.Helper()
			if err != nil {
				rt.Fatal(err)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(rt *rapid.T) {
				k, secret, err := l.Create(ctx, somebody, rapid.SampledFrom(orgs).Draw(rt, "org"), Settings{Name: rapid.String().Draw(rt, "name"), Scopes: []string{"query"}})
				must(err)
				keys[k.ID], secrets[secret] = k, k.ID
				events++
			},
			"update": func(rt *rapid.T) {
				k := some()
				next, err := l.Update(ctx, somebody, k.Org, k.ID, func(s *Settings) error {
					s.Disabled, s.Project = rapid.Bool().Draw(rt, "disabled"), rapid.SampledFrom([]string{"", "one", "two"}).Draw(rt, "project")
					return nil
				})
				must(err)
				keys[k.ID] = next
				events++
			},
			"update in vain": func(rt *rapid.T) {
				k, refused := some(), errors.New("refused")
				if _, err := l.Update(ctx, somebody, k.Org, k.ID, func(s *Settings) error {
					s.Name = "other"
					return refused
				}); !errors.Is(err, refused) {
					rt.Fatal(err)
				}
			},
			"update by another organisation": func(rt *rapid.T) {
				k := some()
				if _, err := l.Update(ctx, somebody, k.Org+"x", k.ID, func(*Settings) error { return nil }); !errors.Is(err, ErrNotFound) {
					rt.Fatal(err)
				}
			},
			"rotate": func(rt *rapid.T) {
				k := some()
				next, secret, err := l.Rotate(ctx, somebody, k.Org, k.ID, time.Duration(rapid.IntRange(0, 1).Draw(rt, "hours"))*time.Hour)
				must(err)
				keys[k.ID], secrets[secret] = next, k.ID
				events++
			},
			"delete": func(rt *rapid.T) {
				k := some()
				must(l.Delete(ctx, somebody, k.Org, k.ID))
				delete(keys, k.ID)
				events++
			},
			"restart": func(*rapid.T) {
				must(l.Close(ctx))
				l = open(t, dir)
			},
			"": func(rt *rapid.T) {
				found, all := 0, 0
				for _, org := range orgs {
					for after := ""; ; {
						page, err := l.Keys(ctx, org, "", after, 2)
						must(err)
						if len(page) == 0 {
							break
						}
						for _, k := range page {
							want, _ := json.Marshal(keys[k.ID])
							if got, _ := json.Marshal(k.Key); string(got) != string(want) {
								rt.Fatalf("%s, want %s", got, want)
							}
							found++
							after = k.ID
						}
					}
					var last *Event
					for before := ""; ; {
						page, err := l.Events(ctx, org, "", before, 3)
						must(err)
						if len(page) == 0 {
							break
						}
						for _, e := range page {
							all++
							before, last = e.ID, &e
						}
					}
					if last != nil && last.Action != Created {
						rt.Fatalf("the first event is %+v", last)
					}
				}
				if found != len(keys) || all != events {
					rt.Fatalf("%d keys of %d, %d events of %d", found, len(keys), all, events)
				}
				now := storage.Millis(time.Now())
				for secret, id := range secrets {
					k, err := l.Find(ctx, hashOf(secret))
					if want := keys[id]; want == nil || !want.has(hashOf(secret)) {
						if !errors.Is(err, ErrNotFound) {
							rt.Fatalf("a secret of %s: %v, %v", id, k, err)
						}
					} else if err != nil || !reflect.DeepEqual(k, want) || k.Opens(hashOf(secret), now) != want.Opens(hashOf(secret), now) {
						rt.Fatalf("%+v, want %+v, %v", k, want, err)
					}
				}
			},
		})
	})
}

// has reports whether a key has the secret, which may have ended.
func (k *Key) has(hash Hash) bool {
	return slices.ContainsFunc(k.Secrets, func(s Secret) bool { return s.hash == hash })
}

func TestOpens(t *testing.T) {
	ctx, l := t.Context(), open(t, t.TempDir())
	now := storage.Millis(time.Now())
	k, first, err := l.Create(ctx, somebody, "acme", Settings{})
	if err != nil || !k.Opens(hashOf(first), now) || k.Opens(hashOf("other"), now) {
		t.Fatal(k, err)
	}
	k, second, err := l.Rotate(ctx, somebody, "acme", k.ID, time.Hour)
	if err != nil || !k.Opens(hashOf(first), now) || !k.Opens(hashOf(second), now) || k.Opens(hashOf(first), now+3700_000) || !k.Opens(hashOf(second), now+3700_000) {
		t.Fatal(k, err)
	}
	ends := now + 1000
	k, err = l.Update(ctx, somebody, "acme", k.ID, func(s *Settings) error {
		s.ExpiresAt = &ends
		return nil
	})
	if err != nil || !k.Opens(hashOf(second), now) || k.Opens(hashOf(second), ends) {
		t.Fatal(k, err)
	}
	k, err = l.Update(ctx, somebody, "acme", k.ID, func(s *Settings) error {
		s.Disabled = true
		return nil
	})
	if err != nil || k.Opens(hashOf(second), now) {
		t.Fatal(k, err)
	}
}

// No secret is in any file, and a copy has what the original has.
func TestSecretsAreNotKept(t *testing.T) {
	ctx, dir, copied := t.Context(), t.TempDir(), t.TempDir()
	l := open(t, dir)
	var secrets []string
	for range 100 {
		k, first, err := l.Create(ctx, somebody, "acme", Settings{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		_, second, err := l.Rotate(ctx, somebody, "acme", k.ID, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, first, second)
	}
	if err := l.CopyTo(ctx, copied); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, copied} {
		files, err := filepath.Glob(dir + "/*")
		if err != nil || len(files) == 0 {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has the mode %v", file, info.Mode())
			}
			for _, secret := range secrets {
				if strings.Contains(string(text), secret) || strings.Contains(string(text), secret[5:40]) {
					t.Fatalf("%s has a secret", file)
				}
			}
		}
	}
	other := open(t, copied)
	if k, err := other.Find(ctx, hashOf(secrets[199])); err != nil || !k.Opens(hashOf(secrets[199]), storage.Millis(time.Now())) {
		t.Error(err)
	}
}

func TestLastUse(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	l := open(t, dir)
	k, _, err := l.Create(ctx, somebody, "acme", Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if listed, err := l.Key(ctx, "acme", k.ID); err != nil || listed.LastUsedAt != nil {
		t.Fatal(listed, err)
	}
	l.Used(k.ID, 1000)
	l.Used(k.ID, 2000)
	if err := l.Close(ctx); err != nil {
		t.Fatal(err)
	}
	listed, err := open(t, dir).Key(ctx, "acme", k.ID)
	if err != nil || listed.LastUsedAt == nil || *listed.LastUsedAt != 2000 {
		t.Error(listed, err)
	}
}

// changeForEver says each change once it was made.
func changeForEver(dir string) {
	l, err := Open(dir, zap.NewNop())
	for n := 0; err == nil; n++ {
		var k *Key
		var secret string
		if k, secret, err = l.Create(context.Background(), somebody, "acme", Settings{Name: fmt.Sprint(n)}); err == nil {
			fmt.Println(k.ID, secret)
		}
		if err == nil && n%3 == 0 {
			err = l.Delete(context.Background(), somebody, "acme", k.ID)
			fmt.Println("deleted", k.ID)
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// A process that is killed leaves each change whole, and all that it has said.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	said := make(map[string]string)
	for round := range 8 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "KEYS_TEST_DIR="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if n == 5+7*round {
				_ = child.Process.Kill()
			}
			first, second, _ := strings.Cut(lines.Text(), " ")
			if first == "deleted" {
				delete(said, second)
			} else if strings.HasPrefix(first, "key_") {
				said[first] = second
			} else {
				t.Fatal(lines.Text())
			}
		}
		_ = child.Wait()
	}
	l := open(t, dir)
	for id, secret := range said {
		k, err := l.Find(t.Context(), hashOf(secret))
		events, failed := l.Events(t.Context(), "acme", id, "", 10)
		deleted := len(events) == 2 && events[0].Action == Deleted // which the process had no time to say
		if failed != nil || !deleted && (err != nil || k.ID != id || len(events) != 1) || deleted && !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v, %v, %d events, %v", id, k, err, len(events), failed)
		}
	}
}
