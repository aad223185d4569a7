//go:build unix

package backup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A file of a backup is a file of its own: a link leads to what the sums do not hold still, and who
// reads a pipe waits for ever.
func TestLinksAndPipesAreNoFiles(t *testing.T) {
	l := begin(t, t.TempDir())
	l.call(t, 1)
	path, _ := write(t, t.TempDir(), l)
	file, elsewhere := filepath.Join(path, "default", "weir.db"), filepath.Join(t.TempDir(), "weir.db")
	for what, replace := range map[string]func() error{
		"a link": func() error { return os.Symlink(elsewhere, file) },
		"a pipe": func() error { return syscall.Mkfifo(file, 0o600) },
	} {
		if err := errors.Join(os.Rename(file, elsewhere), replace()); err != nil {
			t.Fatal(err)
		}
		problems, err := verify(t.Context(), path)
		if err != nil || !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, "is no file") }) {
			t.Errorf("%s: %q, %v", what, problems, err)
		}
		if err := os.Rename(elsewhere, file); err != nil {
			t.Fatal(err)
		}
	}
}
