package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/testkit/creditstest"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/journal"
	"github.com/weirhq/weir/storage/sqlite"
)

// drawn is a test whose numbers are drawn by rapid.
type drawn struct{ *rapid.T }

func (d drawn) Draw(n int, what string) int { return rapid.IntRange(0, n-1).Draw(d.T, what) }

// disk is what a crash leaves in a directory.
type disk map[string]string

func read(t *rapid.T, dir string) disk {
	d := make(disk)
	for _, name := range []string{"credits", "credits.state"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		d[name] = string(text)
	}
	return d
}

// crashing is a ledger that crashes, with what it must be afterwards.
type crashing struct {
	creditstest.Machine
	root string
	dirs int
	dir  string

	before disk // the last step
	// at is the model by the size of the file.
	at map[int64]*creditstest.Model
}

func (c *crashing) open(t *rapid.T, d disk) error {
	c.dirs++
	c.dir = fmt.Sprintf("%s/%d", c.root, c.dirs)
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range d {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := settled(unsynced(c.dir, 400))
	if err == nil {
		c.Ledger = l
	}
	return err
}

func (c *crashing) file() *file { return c.Ledger.(*Ledger).file }

// start goes on with a ledger that is what the model says.
func (c *crashing) start(t *rapid.T, m *creditstest.Model) {
	c.Model = m.Clone()
	c.Check(drawn{t})
	c.before = read(t, c.dir)
	c.at = map[int64]*creditstest.Model{c.file().size: c.Model.Clone()}
}

func (c *crashing) step(t *rapid.T) {
	c.before = read(t, c.dir)
	generation, model := c.file().state.Generation, c.Model.Clone()
	c.Step(drawn{t})
	if c.file().state.Generation != generation {
		// The balances were those from before, and the line follows, or those
		// from after.
		c.at = map[int64]*creditstest.Model{c.file().state.Size: model}
	}
	c.at[c.file().size] = c.Model.Clone()
}

// crash leaves any number of bytes of the file. What was on disk before has to be
// there; of what came later any whole line that is left counts.
func (c *crashing) crash(t *rapid.T) {
	now, synced := read(t, c.dir), c.file().state.Size
	_ = c.file().f.Close()
	left := rapid.Int64Range(0, int64(len(now["credits"]))).Draw(t, "bytes left")
	d := maps.Clone(now)
	d["credits"] = now["credits"][:left]
	d["credits.new"], d["credits.state.new"] = "half of a l", "12"
	if err := c.open(t, d); (err != nil) != (left < synced) || err != nil && !errors.Is(err, credits.ErrUnavailable) {
		t.Fatalf("%d bytes were left, of which %d had been synced: %v", left, synced, err)
	}
	if left < synced { // the operator puts it back
		if err := c.open(t, now); err != nil {
			t.Fatal(err)
		}
		left = int64(len(now["credits"]))
	}
	sizes := slices.Sorted(maps.Keys(c.at))
	whole := sizes[0]
	for _, size := range sizes {
		if size <= left {
			whole = size
		}
	}
	c.start(t, c.at[whole])
}

// crashInStep comes between the two files that a step has changed, if it has.
func (c *crashing) crashInStep(t *rapid.T) {
	d := read(t, c.dir)
	d["credits.state"] = c.before["credits.state"]
	_ = c.file().f.Close()
	if err := c.open(t, d); err != nil {
		t.Fatal(err)
	}
	c.start(t, c.Model)
}

// However a process ends, at any byte of what it writes, the next one has the
// balances that the reference model has: none of what was synced is missing, and
// nothing is counted twice.
func TestCrashAtAnyByte(t *testing.T) {
	root := memoryDir(t)
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		c := &crashing{root: fmt.Sprintf("%s/%d", root, run)}
		if err := c.open(t, nil); err != nil {
			t.Fatal(err)
		}
		c.start(t, new(creditstest.Model))
		t.Repeat(map[string]func(*rapid.T){
			"step": c.step, "step2": c.step, "step3": c.step, "step4": c.step,
			"crash": c.crash, "crash in a step": c.crashInStep,
		})
		_ = c.file().f.Close()
	})
}

// A ledger that has lost charges does not start again with the full grant: nothing
// can be spent, and the error says what to do.
func TestLostChargesAreNotForgiven(t *testing.T) {
	ctx := t.Context()
	spend := func(t *testing.T, dir string) {
		t.Helper()
		l := begin(t, dir, 400)
		r := credits.Reservation{ID: uuid.New(), Org: "acme", Amount: 60, Holds: []credits.Hold{{Account: acme}}}
		must(t, l.Seed(ctx, "acme", 100), l.Reserve(ctx, r), l.Charge(ctx, r, 60), l.Release(ctx, r), l.Close(ctx))
	}
	for name, harm := range map[string]func(t *testing.T, path string, text []byte) error{
		"deleted": func(_ *testing.T, path string, _ []byte) error { return os.Remove(path) },
		"emptied": func(_ *testing.T, path string, _ []byte) error { return os.Truncate(path, 0) },
		"cut":     func(_ *testing.T, path string, text []byte) error { return os.Truncate(path, int64(len(text)-1)) },
		"no charge": func(_ *testing.T, path string, text []byte) error {
			return os.WriteFile(path, []byte(strings.Join(strings.SplitAfter(string(text), "\n")[:2], "")), 0o600)
		},
		"changed": func(_ *testing.T, path string, text []byte) error {
			return os.WriteFile(path, []byte(strings.Replace(string(text), "60", "10", 1)), 0o600)
		},
		"its state": func(_ *testing.T, path string, _ []byte) error { return os.WriteFile(path+".state", nil, 0o600) },
		"older": func(t *testing.T, path string, text []byte) error {
			l := begin(t, filepath.Dir(path), 1)
			must(t, l.Grant(ctx, "acme", 1), l.Close(ctx)) // the next generation
			return os.WriteFile(path, text, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "credits")
			spend(t, dir)
			text, err := os.ReadFile(path)
			must(t, err, harm(t, path, text))
			for range 2 { // the first try changes nothing
				_, err = Open(dir, nil, zap.NewNop())
				if !errors.Is(err, credits.ErrUnavailable) || !strings.Contains(err.Error(), "put back") {
					t.Fatalf("the error is %v", err)
				}
			}
			// As the error says.
			must(t, os.Remove(path+".state"), os.WriteFile(path, text, 0o600))
			wantBalance(t, begin(t, dir, 400), credits.Balance{Granted: 100, Spent: 60})
			must(t, os.Remove(path+".state"), os.Remove(path))
			wantBalance(t, begin(t, dir, 400), credits.Balance{})
		})
	}
}

// A damaged line that others follow is no crash.
func TestDamageIsNotDropped(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	l := begin(t, dir, 1<<20)
	must(t, l.Grant(ctx, "acme", 1), l.Grant(ctx, "acme", 2), l.Grant(ctx, "acme", 3))
	path := filepath.Join(dir, "credits")
	text, err := os.ReadFile(path)
	must(t, err)
	harmed := strings.Replace(string(text), `"grant":2`, `"grant":9`, 1)
	must(t, os.WriteFile(path, []byte(harmed), 0o600))
	if _, err := Open(dir, nil, zap.NewNop()); !errors.Is(err, credits.ErrUnavailable) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("the error is %v", err)
	}
}

// A file takes the place of another only when it is on disk, and the directory is
// synced after that; a grant is on disk when Grant returns.
func TestSyncs(t *testing.T) {
	dir := t.TempDir()
	f := unsynced(dir, 1)
	var synced []string
	f.sync = func(of *os.File) error {
		name, err := filepath.Rel(dir, of.Name())
		if _, placed := os.Stat(of.Name()); name == "credits.new" && placed != nil {
			name = "credits" // which was renamed
		}
		synced = append(synced, name)
		return err
	}
	l, err := open(f)
	must(t, err)
	defer l.Close(context.Background())
	created := []string{"credits.new", ".", "credits", "credits.state.new", "."}
	if !slices.Equal(synced, created) {
		t.Errorf("creating syncs %q, want %q", synced, created)
	}
	must(t, l.Grant(t.Context(), "acme", 1))
	must(t, l.Grant(t.Context(), "acme", 1))
	synced = nil
	must(t, l.Grant(t.Context(), "acme", 1))
	if want := append(created, "credits"); !slices.Equal(synced, want) {
		t.Errorf("a grant and a replacement sync %q, want %q", synced, want)
	}
}

func FuzzOpen(f *testing.F) {
	header := string(appendLine(nil, state{Generation: 1}))
	f.Add(header + string(appendLine(nil, entry{Org: "acme", Grant: 1})) + "{\"or")
	f.Add("x\n" + header)
	f.Fuzz(func(t *testing.T, text string) {
		ctx := t.Context()
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "credits"), []byte(text), 0o600))
		l, err := open(unsynced(dir, 1<<20))
		if err != nil {
			return
		}
		before, err := l.Balance(ctx, credits.Hold{Account: acme})
		must(t, err, l.Grant(ctx, "acme", 1), l.Close(ctx))
		before.Granted++
		wantBalance(t, begin(t, dir, 1<<20), before)
	})
}

// The file of a ledger that is closed may be deleted while the journal is open.
func TestAClosedLedgerIsNotMissed(t *testing.T) {
	dir := t.TempDir()
	o := journal.Options{Dir: dir, Logger: zap.NewNop()}
	j, err := journal.Open(t.Context(), sqlite.New(filepath.Join(dir, "weir.db")), o)
	must(t, err)
	t.Cleanup(func() { _ = j.Close(context.Background()) })
	l, err := Open(dir, j, zap.NewNop())
	must(t, err)
	must(t, l.Close(t.Context()), os.Remove(filepath.Join(dir, FileName)))
	for _, missed := range []string{"first", "second"} { // the journal looks for all files in any order
		j.Witness().Attach(missed, nil)
		j.Reconfigure(o) // wakes what looks for files
		for !slices.ContainsFunc(j.Integrity().Damage, func(d journal.FileDamage) bool { return d.File == missed }) {
			time.Sleep(time.Millisecond)
		}
	}
	for _, d := range j.Integrity().Damage {
		if d.File == FileName {
			t.Errorf("of a ledger that is closed, the journal says: %s", d.Found)
		}
	}
}
