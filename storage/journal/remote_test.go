package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/internal/testkit/storagetest/remote"
	"github.com/weirhq/weir/storage"
)

// listening makes a server that does not listen yet, and returns its socket.
func listening(t *testing.T, f remote.Faults) (*remote.Server, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-remote-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	server := remote.NewServer(socket, f)
	t.Cleanup(func() {
		server.Stop()
		os.RemoveAll(dir)
	})
	return server, socket
}

// A batch that the store finds too large arrives in parts, whole and once.
func TestABatchThatIsTooLargeArrivesInParts(t *testing.T) {
	server, socket := listening(t, remote.Faults{Entries: 5, Unacknowledged: 0.2})
	j, err := Open(t.Context(), remote.New(socket), Options{Dir: t.TempDir(), firstSegment: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close(t.Context()) })
	const n = 40
	for i := range n {
		r := appendSample(t, j, i)
		if err := j.AppendAnnotation(&storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.CreatedAt, Scores: map[string]float64{"n": float64(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	got, err := j.Backend().Requests(t.Context(), &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Limit: 2 * n})
	if err != nil || len(got) != n {
		t.Errorf("%d records arrived, want %d: %v", len(got), n, err)
	}
	for _, r := range got {
		if len(r.Scores) != 1 {
			t.Errorf("record %v has the scores %v", r.ID, r.Scores)
		}
	}
	wantIntegrity(t, j, n, n, 0, 0, nil)
	if err := server.Violation(); err != nil {
		t.Error(err)
	}
}

// Content reads as long as there is any: from the journal while the backend that
// keeps it is down, and from the backend afterwards, when the journal's is gone.
func TestContentThatTheBackendKeeps(t *testing.T) {
	server, socket := listening(t, remote.Faults{})
	j, err := Open(t.Context(), remote.New(socket), Options{Dir: t.TempDir(), firstSegment: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close(t.Context()) })
	if err := j.Connected(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
		t.Fatalf("Connected = %v", err)
	}
	r := appendSample(t, j, 0)
	check := func(contents storage.Contents) {
		t.Helper()
		got, err := j.Request(t.Context(), r.Key())
		if err != nil {
			t.Fatal(err)
		}
		reader := contents.Reader(storage.WholeContent)
		defer reader.Close()
		for _, read := range []func() (*storage.Content, error){
			func() (*storage.Content, error) { return contents.Content(t.Context(), got) },
			func() (*storage.Content, error) { return reader.Content(t.Context(), got) },
		} {
			if c, err := read(); err != nil || c == nil || len(c.Request.Data) == 0 {
				t.Errorf("the content is %v, %v", c, err)
			}
		}
	}
	check(j.Contents())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	check(j.Contents())

	other, err := Open(t.Context(), remote.New(socket), Options{Dir: t.TempDir(), firstSegment: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	if err := other.Connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(other.Contents())
}

// Where the backend keeps content, the journal has it only until the backend has it, and an erasure
// of any scope removes it from both, and from nothing else.
func TestErasureWhereTheBackendKeepsContent(t *testing.T) {
	for _, scope := range []storage.ErasureScope{storage.EraseContent, storage.EraseIdentity, storage.EraseRecord} {
		t.Run(scope.String(), func(t *testing.T) {
			server, socket := listening(t, remote.Faults{})
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			j := open(t, remote.New(socket), Options{Dir: dir})
			var chosen []Chosen
			var all []*storage.Record
			for n := range 30 {
				r, c := personal(n)
				j.Begin(r)
				if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
					t.Fatal(err)
				}
				if all = append(all, r); r.UserID == person {
					chosen = append(chosen, Chosen{r.ID, r.Content})
				}
			}
			flush(t, j)
			e := Erasure{ID: uuid.New(), Org: "acme", Scope: scope, RequestedAt: 1, Records: int64(len(chosen))}
			if err := j.Erase(e, chosen); err != nil {
				t.Fatal(err)
			}
			if c, err := j.Contents().Content(t.Context(), all[0]); c != nil || err != nil {
				t.Errorf("the content can be read before it is erased: %v, %v", c, err)
			}
			eventually(t, "the erasure is done", func() bool {
				signal(j.maintenance.wake)
				got := j.Erasures("acme")[0]
				return got.DoneAt != 0 && got.Erased == got.Records
			})
			if names := append(holding(t, dir, []byte(person)), files(t, dir, sealedSuffix)...); len(names) > 0 {
				t.Errorf("the journal has %v", names)
			}
			for _, r := range all {
				got, err := j.Backend().Request(t.Context(), r.Key())
				if gone := r.UserID == person && scope == storage.EraseRecord; gone != errors.Is(err, storage.ErrNotFound) {
					t.Fatalf("record %s: %v, %v", r.ID, got, err)
				}
				if c, err := j.Contents().Content(t.Context(), r); (c == nil) != (r.UserID == person) || err != nil {
					t.Errorf("the content of %s: %v, %v", r.ID, c, err)
				}
			}
		})
	}
}
