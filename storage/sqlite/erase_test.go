package sqlite

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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

// SQLite leaves copies of rows that it moves to other pages. VACUUM removes the copies of
// deleted rows, as SECURITY.md says.
func TestVacuumRemovesCopiesOfDeletedText(t *testing.T) {
	b := New(filepath.Join(t.TempDir(), "weir.db"))
	if _, err := b.Open(t.Context(), hostOf(noContents{})); err != nil {
		t.Fatal(err)
	}
	const conversations, perBatch = 2000, 50
	r := rand.New(rand.NewPCG(1, 2))
	text := func(i int) string { return fmt.Sprintf("c4nary-%06d", i) }
	ids := make([]string, conversations)
	changeAll := func(step int, change func(i int) storage.ConversationChange) {
		for i := 0; i < conversations; i += perBatch {
			batch := new(storage.Batch)
			for k := i; k < i+perBatch; k += step {
				c := change(k)
				batch.Annotations = append(batch.Annotations, &storage.Annotation{Org: "acme", At: 1_700_000_000_000, Conversation: &c})
			}
			write(t, b, batch)
		}
	}
	changeAll(1, func(i int) storage.ConversationChange {
		ids[i] = fmt.Sprintf("conv_%016x", r.Uint64()) // in no order, so that pages are split
		return storage.ConversationChange{ID: ids[i], Created: true, Metadata: `{"a":"` + text(i) + strings.Repeat("x", r.IntN(600)) + `"}`}
	})
	deleted := make(map[int]bool)
	changeAll(7, func(i int) storage.ConversationChange {
		deleted[i] = true
		return storage.ConversationChange{ID: ids[i], Deleted: true}
	})
	erase(t, b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := openNew(b.path, "PRAGMA secure_delete = ON", "VACUUM")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(b.path + "*")
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, content...)
	}
	for i := range conversations {
		if there := bytes.Contains(all, []byte(text(i))); there == deleted[i] {
			t.Errorf("the text of conversation %d is in the files: %v, deleted: %v", i, there, deleted[i])
		}
	}
	opened(t, b)
	if problems, err := b.Verify(t.Context()); problems != nil || err != nil {
		t.Errorf("the file has the problems %q: %v", problems, err)
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
