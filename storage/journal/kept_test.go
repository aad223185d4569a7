package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/storagetest/remote"
)

// Content reads as long as there is any: from the journal while the backend that
// keeps it is down, and from the backend afterwards, when the journal's is gone.
func TestContentThatTheBackendKeeps(t *testing.T) {
	dir, err := os.MkdirTemp("", "weir-remote-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	server := remote.NewServer(socket, remote.Faults{})
	j, err := Open(t.Context(), remote.New(socket), Options{Dir: t.TempDir(), firstSegment: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		j.Close(t.Context())
		server.Stop()
	})
	if err := j.Connected(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
		t.Fatalf("Connected = %v", err)
	}
	r := appendSample(t, j, 0)
	check := func(contents storage.Contents) {
		t.Helper()
		got, err := j.Request(t.Context(), r.Org, r.ID)
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
