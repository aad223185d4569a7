package sqlite

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weirhq/weir/storage"
)

// The row of a deleted conversation is in no file once the backend has erased it.
func TestDeletedTextIsErased(t *testing.T) {
	b := newBackend(t)
	const secret = "c4nary0123456789abcdef"
	at := storage.Timestamp(1_700_000_000_000)
	change := func(c storage.ConversationChange) {
		at++
		write(t, b, &storage.Batch{Annotations: []*storage.Annotation{{Org: "acme", At: at, Conversation: &c}}})
	}
	found := func() (files []string) {
		paths, err := filepath.Glob(b.path + "*")
		if err != nil || len(paths) == 0 {
			t.Fatalf("%d files, %v", len(paths), err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(content, []byte(secret)) {
				files = append(files, filepath.Base(path))
			}
		}
		return files
	}
	for _, text := range []string{secret, secret + strings.Repeat(" and much more", 5000)} { // within a page, and over several
		change(storage.ConversationChange{ID: "c", Created: true, Metadata: `{"a":"` + secret + `"}`})
		change(storage.ConversationChange{ID: "c", Add: []string{"1"}, Items: []string{`{"text":"` + text + `"}`}})
		erase(t, b)
		if found() == nil {
			t.Fatal("the text is not in a file before it is deleted")
		}
		change(storage.ConversationChange{ID: "c", Deleted: true})
		erase(t, b)
		if files := found(); files != nil {
			t.Errorf("the deleted text is in %v", files)
		}
	}
}

// erase calls Erase as the host does, and returns how often.
func erase(t *testing.T, b *Backend) (steps int) {
	t.Helper()
	for more := true; more; steps++ {
		var err error
		if more, err = b.Erase(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return steps
}

// The file gets smaller when much was deleted, in steps that keep batches waiting for a
// bounded time.
func TestErasingMakesTheFileSmaller(t *testing.T) {
	b := newBackend(t)
	size := func() int64 {
		info, err := os.Stat(b.path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	erase(t, b)
	empty := size()
	at := storage.Timestamp(1_700_000_000_000)
	write(t, b, &storage.Batch{Annotations: []*storage.Annotation{{Org: "acme", At: at, Conversation: &storage.ConversationChange{ID: "c", Created: true}}}})
	item := `{"text":"` + strings.Repeat("many words ", 100_000) + `"}`
	const items = 20
	for i := range items {
		change := storage.ConversationChange{ID: "c", Add: []string{strconv.Itoa(i)}, Items: []string{item}}
		write(t, b, &storage.Batch{Annotations: []*storage.Annotation{{Org: "acme", At: at + 1, Conversation: &change}}})
	}
	erase(t, b)
	if full := size(); full < empty+items*int64(len(item)) {
		t.Fatalf("the file has %d bytes with the conversation, %d without", full, empty)
	}
	write(t, b, &storage.Batch{Annotations: []*storage.Annotation{{Org: "acme", At: at + 2, Conversation: &storage.ConversationChange{ID: "c", Deleted: true}}}})
	if steps, want := erase(t, b), items*len(item)/8192/erasePages; steps <= want {
		t.Errorf("%d steps, want more than %d", steps, want)
	}
	if left := size(); left > empty+1<<20 {
		t.Errorf("the file has %d bytes when the conversation is deleted, and had %d before it", left, empty)
	}
}
