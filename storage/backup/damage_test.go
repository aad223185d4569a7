package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirhq/weir/internal/testkit/filedamage"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	objects "github.com/weirhq/weir/storage/control/embedded"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
	"github.com/weirhq/weir/storage/journal"
	"github.com/weirhq/weir/storage/sqlite"
)

var full = flag.Bool("full", false, "damage the files of a store in 2,000 ways")

// served is what a store answers, one line for each thing.
type served map[string]string

// damaged is a store whose files are damaged.
type damaged struct {
	dir  string
	logs *observer.ObservedLogs
	live
	words []string // what was said of the damage
}

func (d *damaged) say(err error) bool {
	if err != nil {
		d.words = append(d.words, err.Error())
	}
	return err == nil
}

// open opens the store, as far as it can be opened.
func (d *damaged) open(t *testing.T) bool {
	t.Helper()
	core, logs := observer.New(zapcore.WarnLevel)
	logger := zap.New(core)
	d.logs, d.path = logs, filepath.Join(d.dir, "weir.db")
	dir := d.path + journalSuffix
	var err error
	d.Journal, err = journal.Open(t.Context(), sqlite.New(d.path), journal.Options{Dir: dir, SegmentBytes: 32 << 10, Logger: logger})
	if !d.say(err) {
		return false
	}
	d.say(d.Connected(t.Context()))
	d.ledger, d.keys = nil, nil
	if ledger, err := embedded.Open(dir, d.Journal, logger); d.say(err) {
		d.ledger = ledger
		d.say(ledger.Seed(t.Context(), "acme", granted))
	}
	if keys, err := objects.Open(dir, d.Journal, logger); d.say(err) {
		d.keys = keys
	}
	return true
}

// close closes the store, and keeps what its log and its reconciliation say.
func (d *damaged) close() {
	for _, l := range d.Integrity().Losses {
		d.words = append(d.words, fmt.Sprintf("lost: %+v", l))
	}
	for _, f := range d.Integrity().Damage {
		d.words = append(d.words, fmt.Sprintf("damage: %+v", f))
	}
	if d.keys != nil {
		_ = d.keys.Close(context.Background())
	}
	if d.ledger != nil {
		_ = d.ledger.Close(context.Background())
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = d.Journal.Close(ctx)
	for _, l := range d.logs.All() {
		d.words = append(d.words, "log: "+l.Message+fmt.Sprint(l.ContextMap()))
	}
}

// answers asks the store for everything.
func (d *damaged) answers(t *testing.T) served {
	s, ctx := served{}, t.Context()
	refused, cancel := context.WithTimeout(ctx, 2*time.Second) // or its database takes nothing any more
	defer cancel()
	d.say(d.Flush(refused))
	b := d.Backend()
	page, err := b.Requests(ctx, &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Limit: 1 << 20})
	d.say(err)
	for _, r := range page {
		s.add("record", r.ID, r)
		c, err := d.Contents().Content(ctx, r)
		if !d.say(err) || c == nil {
			continue
		}
		s["body "+r.ID.String()] = string(c.Request.Data) + string(c.Response.Data)
	}
	for n := range 4 {
		user := fmt.Sprint("user-", n)
		filter, err := storage.ParseFilter([]byte(`{"request_response_rmt":{"user_id":{"equals":"`+user+`"}}}`), storage.RequestResponse)
		if err != nil {
			t.Fatal(err)
		}
		page, err := b.Requests(ctx, &storage.RequestQuery{Org: "acme", Filter: filter, Limit: 1 << 20})
		d.say(err)
		s.add("records of", user, len(page))
	}
	users, err := (&storage.UserQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always, Limit: 100}).Answer(ctx, b)
	if d.say(err) {
		for _, u := range users.Users {
			s.add("sum of", u.UserID, u)
		}
	}
	conversation, err := b.Conversation(ctx, "acme", "conv_1", storage.AllItems)
	if d.say(err) {
		s.add("conversation", "conv_1", conversation)
	}
	if d.ledger != nil {
		balance, err := d.ledger.Balance(ctx, credits.Hold{Account: credits.Account{Org: "acme"}})
		if d.say(err) {
			s.add("balance", "acme", balance)
		}
	}
	if d.keys != nil {
		keys, err := d.keys.List(ctx, "acme", control.KindKey, control.Page{Limit: 100})
		if d.say(err) {
			s.add("keys", "acme", keys)
		}
	}
	problems, err := b.(storage.Verifier).Verify(ctx)
	d.say(err)
	d.words = append(d.words, problems...)
	return s
}

func (s served) add(what string, of, v any) {
	text, err := json.Marshal(v)
	s[fmt.Sprint(what, " ", of)] = fmt.Sprint(string(text), err)
}

// missing are the things that s lacks, or has otherwise.
func (s served) missing(want served) (all []string) {
	for name, text := range want {
		if s[name] != text {
			all = append(all, name+": "+s[name])
		}
	}
	slices.Sort(all)
	return all
}

// calls is the number of calls that the store of the fixture has recorded, and granted is the
// first credit.
const (
	calls   = 80
	granted = 1_000_000_000
)

// fixture is a store as it was in the middle, after a kill, and after a stop.
type fixture struct {
	middle, killed, stopped map[string][]byte
	want                    served
}

func makeFixture(t *testing.T) *fixture {
	d := &damaged{dir: t.TempDir()}
	if !d.open(t) {
		t.Fatal(d.words)
	}
	acme := &control.Organisation{Log: d.keys, Name: "acme"}
	work := func(from int) {
		for n := from; n < from+calls/2; n++ {
			r := d.call(t, n%4)
			if n%5 == 0 {
				_ = d.AppendAnnotation(&storage.Annotation{Org: "acme", RequestID: r.ID, At: r.CreatedAt, Scores: map[string]float64{"quality": float64(n)}, Property: &storage.Property{Name: "Team", Value: fmt.Sprint("team-", n%3)}})
			}
		}
		change := &storage.ConversationChange{ID: "conv_1", Created: from == 0, Add: []string{fmt.Sprint("item-", from)}, Items: []string{`{"text":"hello"}`}}
		if err := d.AppendAnnotation(&storage.Annotation{Org: "acme", At: storage.Millis(time.Now()), Conversation: change}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := acme.CreateKey(t.Context(), control.Settings{Name: fmt.Sprint("key-", from)}); err != nil {
			t.Fatal(err)
		}
		if err := d.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f := &fixture{}
	work(0)
	f.middle = filesIn(t, d.dir)
	work(calls / 2)
	for deadline := time.Now().Add(10 * time.Second); d.Status().SealedSegments == 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	f.want = d.answers(t)
	time.Sleep(1100 * time.Millisecond) // the files of other packages are witnessed once a second
	f.killed = filesIn(t, d.dir)
	d.close()
	f.stopped = filesIn(t, d.dir)
	if len(d.words) > 0 {
		t.Fatalf("before any damage: %q", d.words)
	}
	return f
}

// like returns the file of the stopped store that has the name of a path, or else one of its kind, nil
// if there is none.
func (f *fixture) like(path string) []byte {
	for name, text := range f.stopped {
		if filepath.Base(name) == filepath.Base(path) {
			return text
		}
	}
	for name, text := range f.stopped {
		if filepath.Ext(name) == filepath.Ext(path) {
			return text
		}
	}
	return nil
}

// exchange gives a file the place of another of its kind in its directory, if there is one.
func exchange(rng *rand.Rand, path string, text, _ []byte) error {
	others, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+filepath.Ext(path)))
	if err != nil {
		return err
	}
	other := others[rng.IntN(len(others))]
	if info, err := os.Stat(other); err != nil || info.IsDir() {
		return err
	}
	its, err := os.ReadFile(other)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path, its, 0o600), os.WriteFile(other, text, 0o600))
}

// filesIn reads the files below a directory, by their names in it.
func filesIn(t *testing.T, dir string) map[string][]byte {
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // a temporary file
			return nil
		}
		name, _ := filepath.Rel(dir, path)
		all[name] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Whatever befalls a file of a store that was stopped or killed, or that is open, nothing is lost,
// or answered otherwise than before, without a word of the store and of Check.
func TestNoDamageIsSilent(t *testing.T) {
	f, foreign := makeFixture(t), makeFixture(t)
	replacements := append(slices.Clone(filedamage.Replacements),
		filedamage.Kind{Name: "of another store", Do: func(_ *rand.Rand, path string, _, _ []byte) error {
			return os.WriteFile(path, foreign.like(path), 0o600)
		}},
		filedamage.Kind{Name: "exchanged", Do: exchange},
	)
	cases := 40
	if *full {
		cases = 2000
	}
	for n := range cases + cases/4 {
		kinds := filedamage.Kinds
		if n >= cases {
			kinds = replacements
		}
		rng := rand.New(rand.NewPCG(7, uint64(n)))
		state := []string{"stopped", "killed", "open"}[n%3]
		from := f.killed
		if state == "stopped" {
			from = f.stopped
		}
		var names []string
		for name, text := range from {
			if base := filepath.Base(name); len(text) > 0 && base != "lock" && !strings.HasSuffix(name, "-shm") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		name := names[rng.IntN(len(names))]
		if rng.IntN(3) == 0 {
			name = "weir.db"
		}
		harm := kinds[rng.IntN(len(kinds))]
		t.Run(fmt.Sprintf("%d %s %s %s", n, state, filepath.Base(name), harm.Name), func(t *testing.T) {
			d := &damaged{dir: t.TempDir()}
			for file, text := range from {
				path := filepath.Join(d.dir, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			do := func() {
				path := filepath.Join(d.dir, name)
				text, err := os.ReadFile(path)
				if err != nil || len(text) == 0 { // its process has replaced it
					if state == "open" {
						d.close()
					}
					t.Skip(err)
				}
				if err := harm.Do(rng, path, text, f.middle[name]); err != nil {
					t.Fatal(err)
				}
			}
			want, record := maps.Clone(f.want), ""
			if state == "open" {
				if !d.open(t) {
					t.Fatal(d.words)
				}
				do()
				r, err := d.try(t.Context(), 9)
				d.say(err)
				record = "record " + r.ID.String()
				want.add("balance", "acme", credits.Balance{Account: credits.Account{Org: "acme"}, Granted: granted, Spent: price * (calls + 1)})
				answers := d.answers(t)
				want[record] = cmp.Or(answers[record], newRecord)
				d.close()
				silent(t, "the open store", answers.missing(want), d.words)
				d.words = nil
			} else {
				do()
			}
			reports, problems, err := Check(t.Context(), d.dir, new(sqlite.Storage))
			if err != nil {
				problems = append(problems, err.Error())
			}
			for _, r := range reports {
				problems = append(problems, r.Problems...)
				for _, l := range r.Journal.Integrity.Losses {
					problems = append(problems, fmt.Sprint(l))
				}
				for _, l := range r.Journal.Integrity.Damage {
					problems = append(problems, fmt.Sprint(l))
				}
			}
			var missing []string
			if d.open(t) {
				answers := d.answers(t)
				if want[record] == newRecord { // whatever it says
					want[record] = cmp.Or(answers[record], newRecord)
				}
				missing = answers.missing(want)
				d.close()
			}
			silent(t, "the store", missing, d.words)
			silent(t, "Check", missing, problems)
		})
	}
}

// newRecord stands for a record that the open store did not answer.
const newRecord = "the new record"

// silent fails the test if something is missing and nobody has said so.
func silent(t *testing.T, who string, missing, words []string) {
	t.Helper()
	if len(missing) > 0 && len(words) == 0 {
		t.Errorf("%s says nothing, and has otherwise %d: %.1000q", who, len(missing), missing[:min(len(missing), 3)])
	}
}
