package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

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
