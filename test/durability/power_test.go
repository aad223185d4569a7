//go:build linux

package durability

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// written is a call whose record stands in these bytes of the journal's segment,
// and in no other.
type written struct {
	*call
	id         string
	start, end int
}

// TestPowerCut damages a journal that no database has taken yet the way a power
// cut or a bad disk does. Every record that remains whole must be there at the
// next start, and every other be counted as lost.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(config{})
	data, before := filepath.Join(w.dir, "data"), filepath.Join(w.dir, "tmp", "before")
	since := time.Now()
	var segment string // the only one
	size := func() int {
		found, err := filepath.Glob(filepath.Join(w.database()+".segments", "*.raw"))
		if err != nil || len(found) > 1 {
			t.Fatal(found, err)
		}
		if len(found) == 0 {
			return 0
		}
		segment = found[0]
		info, err := os.Stat(segment)
		if err != nil {
			t.Fatal(err)
		}
		return int(info.Size())
	}
	unlock := w.lock()
	var calls []written
	for i := range 24 {
		c := written{call: p.call(dialects[i%len(dialects)]), start: size()}
		c.stream, c.sized = i%2 == 0, true
		c.text += strings.Repeat("x", 1000)
		c.id = c.must(t, w).id
		c.end = size()
		calls = append(calls, c)
	}
	w.kill()
	unlock()
	if err := os.Rename(data, before); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(before, "weir.db.segments", filepath.Base(segment)))
	if err != nil {
		t.Fatal(err)
	}
	const header = 16
	// A damage returns what became of the segment, from where on it is gone, and
	// which bytes before are others.
	for range rounds(2, 12) {
		for name, damage := range map[string]func() (after []byte, gone int, flipped []int){
			"cut off": func() ([]byte, int, []int) {
				at := rand.N(len(whole))
				return whole[:at], at, nil
			},
			"tail of zeros": func() ([]byte, int, []int) { // the file's length came to the disk, and not its end
				at := header + rand.N(len(whole)-header)
				after := slices.Clone(whole)
				clear(after[at:])
				return after, at, nil
			},
			"tail of something": func() ([]byte, int, []int) {
				at := header + rand.N(len(whole)-header)
				after := slices.Clone(whole)
				copy(after[at:], whole)
				return after, at, nil
			},
			"flipped bits": func() ([]byte, int, []int) {
				after := slices.Clone(whole)
				var flipped []int
				for range 1 + rand.N(3) {
					at := header + rand.N(len(whole)-header)
					after[at] ^= 1 << rand.N(8)
					flipped = append(flipped, at)
				}
				return after, len(whole), flipped
			},
		} {
			after, gone, flipped := damage()
			what := fmt.Sprintf("%s at %d of %d, %v", name, gone, len(whole), flipped)
			if err := os.RemoveAll(data); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(data, os.DirFS(before)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(segment, after, 0o600); err != nil {
				t.Fatal(err)
			}
			w.start(config{})
			w.flush()
			records := w.records(since)
			missing, damaged := 0, 0 // of the damaged, something is left
			for _, c := range calls {
				r := records[c.name()]
				hit := slices.ContainsFunc(flipped, func(at int) bool { return c.start <= at && at < c.end })
				switch {
				case c.end <= gone && !hit:
					c.check(t, r, c.id)
				case r == nil:
					missing++
					continue
				case r.PromptTokens != nil && *r.PromptTokens != c.input(): // unknown, where a first version is left
					t.Errorf("%s has %s tokens", c.name(), number(r.PromptTokens))
				}
				if hit {
					damaged++
				}
			}
			// A record counts with its first version: where that is damaged, a later
			// one may stand for a call that is declared lost.
			b := w.settled()
			if b.Seen != int64(len(calls)) || b.Lost < int64(missing) || b.Lost > int64(missing+damaged) {
				t.Errorf("%d calls, %d are missing, %d damaged; the balance is %+v", len(calls), missing, damaged, b)
			}
			c := p.call(chat)
			id := c.must(t, w).id
			w.flush()
			c.check(t, w.records(since)[c.name()], id)
			w.kill()
			if t.Failed() {
				t.Fatal(what)
			}
		}
	}
}
