package disk

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"first", "second"} {
		if err := Replace(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); string(got) != text || err != nil {
			t.Errorf("the file has %q, %v", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
	if err := Replace(filepath.Join(path, "below a file"), nil, 0o600); err == nil {
		t.Error("a file was written where none can be")
	}
	if all, err := os.ReadDir(filepath.Dir(path)); len(all) != 1 || err != nil {
		t.Errorf("the folder has %v, %v", all, err)
	}
}
