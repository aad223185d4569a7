package sqlite

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/storage"
)

// The text of a deleted conversation is in no file once the backend has erased it.
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
		if err := b.Erase(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found() == nil {
			t.Fatal("the text is not in a file before it is deleted")
		}
		change(storage.ConversationChange{ID: "c", Deleted: true})
		if err := b.Erase(t.Context()); err != nil {
			t.Fatal(err)
		}
		if files := found(); files != nil {
			t.Errorf("the deleted text is in %v", files)
		}
	}
}
