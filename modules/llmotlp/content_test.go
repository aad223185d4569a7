package llmotlp

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest/remote"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// A span that comes when a backend that keeps bodies has those of its call leaves them there. While the
// backend cannot be read, the batch fails: what it has would be replaced by less.
func TestContentAtABackendIsMerged(t *testing.T) {
	dir, err := os.MkdirTemp("", "weir-otlp-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	server := remote.NewServer(socket, remote.Faults{})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	node := func() *journal.Journal {
		j, err := journal.Open(t.Context(), remote.New(socket), journal.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close(t.Context()) })
		return j
	}

	now := storage.Millis(time.Now())
	call := &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: now, RespondedAt: now + 1, Dialect: plugins.Chat}
	request := storage.Body{Data: []byte(`{"messages":[{"role":"user","content":"hello"}]}`)}
	first := node()
	if err := first.Append(call, storage.Keep(call, storage.Content{Request: request}, maxBody)); err != nil {
		t.Fatal(err)
	}
	if err := first.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	second := node() // whose segments have nothing of the call
	if err := second.Connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored, err := second.Request(t.Context(), call.Key())
	if err != nil {
		t.Fatal(err)
	}
	outer := *stored
	later := &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: now, Dialect: plugins.Chat}
	rs, merged := &reports{ctx: t.Context(), journal: second}, &report{Record: &outer, stored: true}
	rs.merge(merged, &report{Record: later, content: storage.Keep(later, storage.Content{}, maxBody)}, true)
	if got := rs.content(merged).Request.Data; string(got) != string(request.Data) || rs.failure != nil {
		t.Errorf("the request is %q, %v", got, rs.failure)
	}
	server.Stop()
	if rs.content(&report{Record: stored, stored: true}); rs.failure == nil {
		t.Error("a backend that cannot be read fails no batch")
	}
}
