package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// holding lists the files of a journal that have some bytes, also if the file is compressed.
func holding(t *testing.T, dir string, canary []byte) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return holding(t, dir, canary) // it was renamed meanwhile
		}
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(path) == sealedSuffix {
			text = append(text, plain(t, path)...)
		}
		if bytes.Contains(text, canary) {
			names = append(names, e.Name())
		}
	}
	return names
}

// An erasure removes content from segments in any state, goes on after a crash, and leaves what
// other records have.
func TestErasure(t *testing.T) {
	for name, crash := range map[string]func(t *testing.T, j *Journal, erase func()){
		"active segment": func(_ *testing.T, _ *Journal, erase func()) { erase() },
		"sealed segment": func(t *testing.T, j *Journal, erase func()) { seal(t, j, 1); erase() },
		"killed before the first step": func(t *testing.T, j *Journal, erase func()) {
			seal(t, j, 1)
			alone(j)
			erase()
		},
		"killed before the segment was sealed": func(_ *testing.T, j *Journal, erase func()) {
			alone(j)
			erase()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := &backend{}
			j := open(t, b, Options{Dir: dir})
			turns := small.Generate()
			var refs []storage.ContentRef
			var gone []Chosen
			canary := []byte("c4nary0123456789abcdef")
			for i := range turns {
				if i%3 == 0 {
					turns[i].Answer = append(slices.Clone(turns[i].Answer), canary...)
				}
				refs = append(refs, appendTurn(t, j, i, &turns[i]))
				if i%3 == 0 {
					gone = append(gone, Chosen{numbered(i), refs[i]})
				}
			}
			flush(t, j)
			if holding(t, dir, canary) == nil {
				t.Fatal("no file has the canary before")
			}
			id := uuid.New()
			crash(t, j, func() {
				if err := j.Erase(Erasure{ID: id, Org: "org", RequestedAt: 1}, gone); err != nil {
					t.Fatal(err)
				}
			})
			if ended(j) {
				killed, stop := context.WithCancel(t.Context())
				stop()
				j.Close(killed)
				j = open(t, b, Options{Dir: dir})
			}
			eventually(t, "the erasure is done", func() bool { return j.Erasures("org")[0].DoneAt != 0 })
			e := j.Erasures("org")[0]
			if e.ID != id || e.Erased != int64(len(gone)) || len(e.Left) > 0 {
				t.Errorf("%+v, want %d erased", e, len(gone))
			}
			if j.Erasures("other") != nil {
				t.Error("another organisation sees the erasure")
			}
			if names := holding(t, dir, canary); names != nil {
				t.Errorf("the canary is in %v", names)
			}
			r := j.Contents().Reader(storage.WholeContent)
			defer r.Close()
			for i := range turns {
				if i%3 != 0 {
					wantTurn(t, r, i, refs[i], &turns[i])
				} else if c, err := r.Content(t.Context(), &storage.Record{ID: numbered(i), Org: "org", Content: refs[i]}); c != nil || err != nil {
					t.Errorf("turn %d: %v, %v", i, c, err)
				}
			}
			if losses := j.Integrity().Losses; len(losses) > 0 {
				t.Errorf("counted as lost: %+v", losses)
			}
			if err := j.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantChecked(t, dir, refs)
		})
	}
}

// wantChecked checks the files of a journal whose backend has records with some content.
func wantChecked(t *testing.T, dir string, refs []storage.ContentRef) {
	t.Helper()
	report, err := Check(t.Context(), dir, func(_ uuid.UUID, match func(*storage.Record)) (storage.Position, error) {
		for i, ref := range refs {
			match(&storage.Record{ID: uuid.UUID{byte(i)}, Content: ref})
		}
		return storage.Position{Segment: refs[0].Segment + 1}, nil
	})
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("check: %q, %v", report.Problems, err)
	}
}

// ended reports whether the maintenance of a journal has ended.
func ended(j *Journal) bool {
	select {
	case <-j.maintenance.ended:
		return true
	default:
		return false
	}
}

// Without its list, or with a damaged one, the journal does not know what is left to erase: it says so and takes no
// erasure until somebody accepts that.
func TestForgottenErasures(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"gone":    os.Remove,
		"damaged": func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) { testForgottenErasures(t, harm) })
	}
}

func testForgottenErasures(t *testing.T, harm func(path string) error) {
	dir := t.TempDir()
	b := &backend{}
	j := open(t, b, Options{Dir: dir})
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme"}, nil); err != nil {
		t.Fatal(err)
	}
	j.Close(t.Context())
	path := filepath.Join(dir, ErasuresName)
	if err := harm(path); err != nil {
		t.Fatal(err)
	}
	if report, err := Check(t.Context(), dir, nil); err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], path) {
		t.Errorf("check: %+v, %v", report, err)
	}
	j = open(t, b, Options{Dir: dir})
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme"}, nil); err == nil {
		t.Error("an erasure was taken")
	}
	j.Close(t.Context())
	if known, err := Forget(dir, ErasuresName); !known || err != nil {
		t.Fatal(known, err)
	}
	j = open(t, b, Options{Dir: dir})
	defer j.Close(t.Context())
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme"}, nil); err != nil {
		t.Error(err)
	}
}

// stuck is a backend that erases nothing of some organisations.
type stuck struct {
	backend
	orgs []string
}

func (b *stuck) EraseRecords(ctx context.Context, org string, ids []uuid.UUID, scope storage.ErasureScope) error {
	if slices.Contains(b.orgs, org) {
		return errors.New("it cannot be erased")
	}
	return b.backend.EraseRecords(ctx, org, ids, scope)
}

// EraseUnused cannot overwrite copies.
func (*stuck) EraseUnused(context.Context) error { return storage.ErrCopiesRemain }

// The erasures of an organisation are done while those of others cannot be. A start, which finds
// their records again, needs no turn of a scan.
func TestErasuresGoOnWithoutThoseThatCannot(t *testing.T) {
	o, b := Options{Dir: t.TempDir(), Scan: noTurn}, &stuck{orgs: []string{"beta", "gamma", "acme"}}
	j := open(t, b, o)
	erase := func() {
		t.Helper()
		for n, org := range []string{"beta", "gamma", "acme"} {
			r, _ := sample(n)
			r.Org, r.ID = org, uuid.New()
			if err := j.Append(r, nil); err != nil {
				t.Fatal(err)
			}
			flush(t, j)
			if err := j.Erase(Erasure{ID: uuid.New(), Org: org, Scope: storage.EraseRecord}, []Chosen{{ID: r.ID}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	done := func(org string) bool {
		return !slices.ContainsFunc(j.Erasures(org), func(e Erasure) bool { return e.DoneAt == 0 })
	}
	erase()
	j.Close(t.Context())
	b.orgs = b.orgs[:2]
	j = open(t, b, o)
	for range 2 {
		eventually(t, "what can be erased is", func() bool { signal(j.maintenance.wake); return done("acme") })
		if !j.Erasures("acme")[0].CopiesRemain {
			t.Error("the erasure does not say that copies remain")
		}
		if done("beta") || done("gamma") {
			t.Error("what is not erased is done")
		}
		erase()
	}
}

// While an erasure waits, its content is in the files, and nobody can read it, also after a crash.
func TestContentIsUnreadableBeforeItIsErased(t *testing.T) {
	dir := t.TempDir()
	b := &backend{}
	j := open(t, b, Options{Dir: dir})
	turns := small.Generate()
	var refs []storage.ContentRef
	for i := range turns {
		if i == len(turns)/2 {
			seal(t, j, 1)
		}
		refs = append(refs, appendTurn(t, j, i, &turns[i]))
	}
	flush(t, j)
	check := func(j *Journal, r storage.ContentReader) {
		t.Helper()
		for i, ref := range refs {
			if i%2 == 0 {
				wantTurn(t, r, i, ref, &turns[i])
				continue
			}
			rec := &storage.Record{ID: numbered(i), Org: "org", Content: ref}
			one, err := j.Contents().Content(t.Context(), rec)
			listed, err2 := r.Content(t.Context(), rec)
			answer, err3 := j.Answer(t.Context(), rec)
			if one != nil || listed != nil || answer.Data != nil || errors.Join(err, err2, err3) != nil {
				t.Fatalf("turn %d can be read: %v, %v, %q, %v", i, one, listed, answer.Data, errors.Join(err, err2, err3))
			}
		}
	}
	r := j.Contents().Reader(storage.WholeContent)
	for i, ref := range refs {
		wantTurn(t, r, i, ref, &turns[i])
	}
	j.maintenance.takeTurn(t.Context()) // as a backup does: nothing is erased meanwhile
	var gone []Chosen
	for i := 1; i < len(refs); i += 2 {
		gone = append(gone, Chosen{numbered(i), refs[i]})
	}
	removals := j.Removals()
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "org"}, gone); err != nil {
		t.Fatal(err)
	}
	if j.Removals() == removals {
		t.Error("an erasure is no removal")
	}
	check(j, r)
	r.Close()
	killed, stop := context.WithCancel(t.Context())
	stop()
	j.Close(killed)
	j = open(t, b, Options{Dir: dir})
	defer j.Close(t.Context())
	r = j.Contents().Reader(storage.WholeContent)
	defer r.Close()
	check(j, r)
}

// finder is a backend that finds a response until it is erased from its files.
type finder struct {
	backend
	response *storage.Record
}

func (f *finder) Response(context.Context, string, string) (*storage.Record, error) {
	return f.response, nil
}

// A response is not found once its identity is erased, though the backend still has it.
func TestErasedResponsesAreNotFound(t *testing.T) {
	for scope, found := range map[storage.ErasureScope]bool{storage.EraseContent: true, storage.EraseIdentity: false, storage.EraseRecord: false} {
		b := &finder{response: &storage.Record{ID: numbered(1), Org: "org", ResponseID: "msgbatch_1"}}
		j := open(t, b, Options{Dir: t.TempDir()})
		if r, err := j.Response(t.Context(), "org", "msgbatch_1"); err != nil || r != b.response {
			t.Fatalf("before the erasure: %v, %v", r, err)
		}
		if err := j.Erase(Erasure{ID: uuid.New(), Org: "org", Scope: scope}, []Chosen{{ID: b.response.ID}}); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Response(t.Context(), "org", "msgbatch_1"); (err == nil) != found || !found && !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("after an erasure of the scope %d: %v", scope, err)
		}
		j.Close(t.Context())
	}
}

// A segment of which everything is erased has no file any more, and that is no damage.
func TestErasureOfAWholeSegment(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		t.Run(fmt.Sprint("sealed ", sealed), func(t *testing.T) { testErasureOfAWholeSegment(t, sealed) })
	}
}

func testErasureOfAWholeSegment(t *testing.T, sealed bool) {
	dir := t.TempDir()
	b := &backend{}
	j := open(t, b, Options{Dir: dir})
	turns := small.Generate()
	var refs []storage.ContentRef
	var all []Chosen
	for i := range turns {
		refs = append(refs, appendTurn(t, j, i, &turns[i]))
		all = append(all, Chosen{numbered(i), refs[i]})
	}
	if flush(t, j); sealed {
		seal(t, j, 1)
	}
	r := j.Contents().Reader(storage.WholeContent)
	defer r.Close()
	wantTurn(t, r, 0, refs[0], &turns[0])
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "org"}, all); err != nil {
		t.Fatal(err)
	}
	for e := (Erasure{}); e.DoneAt == 0; e = j.Erasures("org")[0] {
		if c, err := j.Contents().Content(t.Context(), &storage.Record{ID: numbered(0), Org: "org", Content: refs[0]}); c != nil || err != nil {
			t.Fatal(c, err)
		}
	}
	if c, err := r.Content(t.Context(), &storage.Record{ID: numbered(1), Org: "org", Content: refs[1]}); c != nil || err != nil { // it has the file open
		t.Errorf("an open reader answers %v, %v", c, err)
	}
	if found := files(t, dir, sealedSuffix); len(found) > 0 {
		t.Errorf("%v are left", found)
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantChecked(t, dir, refs)
	j = open(t, b, Options{Dir: dir})
	defer j.Close(t.Context())
	if losses := j.Integrity().Losses; len(losses) > 0 {
		t.Errorf("counted as lost: %+v", losses)
	}
}
