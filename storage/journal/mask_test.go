package journal

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// No file of a journal has what is masked, whoever appends it: neither in bodies, nor in names,
// nor in annotations.
func TestMaskedValuesReachNoFile(t *testing.T) {
	canary := []byte("alice@example.com")
	m, err := mask.New([]*mask.Rule{{Kinds: []string{"email"}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	j := open(t, &backend{}, Options{Dir: dir, Mask: func(string, mask.Content) *mask.Masker { return m }})
	r, c := sample(0)
	r.UserID, c.Request = string(canary), storage.Body{Type: "application/json", Data: []byte(`{"messages":[{"content":"alice@example.com"}]}`)}
	if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
		t.Fatal(err)
	}
	if r.UserID != string(canary) {
		t.Errorf("the caller's record has the user %s", r.UserID)
	}
	tag := string(canary)
	if err := j.AppendAnnotation(&storage.Annotation{Org: r.Org, SessionID: tag, At: 5, Tag: &tag}); err != nil {
		t.Fatal(err)
	}
	label := false
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, canary) {
			t.Errorf("%s has the value", path)
		}
		label = label || bytes.Contains(raw, []byte("[EMAIL]"))
		return err
	})
	if err != nil || !label {
		t.Errorf("%v; a file has the label: %v", err, label)
	}
}
