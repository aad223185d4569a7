package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/storage/journal"
)

// sumsName is the file with the sums of all other files. A directory with it is a backup.
const sumsName = "SHA256SUMS"

// sum syncs every file of the backup, and writes the list of checksums. A file that is a hard link into the
// backup before was synced then: its checksum is copied. sum also counts files and bytes in stores.
func (w *writer) sum(ctx context.Context, stores []StoreSummary) error {
	before := map[string]string{}
	if w.before != "" {
		var err error
		if before, err = readSums(w.before); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	err := filepath.WalkDir(w.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return journal.SyncDir(path)
		}
		name, err := filepath.Rel(w.root, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		sum, linked := before[name]
		if linked {
			earlier, err := os.Stat(filepath.Join(w.before, name))
			linked = err == nil && os.SameFile(info, earlier)
		}
		if !linked {
			if sum, err = sumAndSync(ctx, path); err != nil {
				return err
			}
		}
		for i := range stores {
			if s := &stores[i]; strings.HasPrefix(name, s.Store+string(filepath.Separator)) {
				s.Files++
				s.Bytes += info.Size()
				if !linked {
					s.Copied += info.Size()
				}
			}
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, filepath.ToSlash(name))
		return nil
	})
	if err != nil {
		return err
	}
	path := filepath.Join(w.root, sumsName)
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		return err
	}
	if _, err := sumAndSync(ctx, path); err != nil {
		return err
	}
	return journal.SyncDir(w.root)
}

// sumAndSync returns the SHA-256 of a file in hexadecimal, and syncs the file.
func sumAndSync(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, err := sumOf(ctx, f)
	return sum, errors.Join(err, f.Sync())
}

func sumOf(ctx context.Context, r io.Reader) (string, error) {
	h := sha256.New()
	_, err := io.Copy(h, cancellable{ctx, r})
	return hex.EncodeToString(h.Sum(nil)), err
}

// readSums reads the sums of a backup, by the names of its files.
func readSums(dir string) (map[string]string, error) {
	f, err := os.Open(filepath.Join(dir, sumsName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sums := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		sum, name, found := strings.Cut(lines.Text(), "  ")
		if name = filepath.FromSlash(name); !found || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%s: a line is damaged: %q", f.Name(), lines.Text())
		}
		sums[name] = sum
	}
	return sums, lines.Err()
}

// verify compares every file of a backup with its checksum. A file without one is a problem, too: the
// list may have been cut off.
func verify(ctx context.Context, dir string) (problems []string, err error) {
	sums, err := readSums(dir)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		_, listed := sums[name]
		switch {
		case !entry.Type().IsRegular(): // not read: a pipe may have no end
			problems = append(problems, path+" is no file: a backup has files alone, and no links")
			delete(sums, name)
		case !listed && name != sumsName:
			problems = append(problems, fmt.Sprintf("%s is not in %s: the list was cut, or the file was added later", path, sumsName))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for name, want := range sums {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		sum, err := sumOf(ctx, f)
		f.Close()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			problems = append(problems, err.Error())
		case sum != want:
			problems = append(problems, fmt.Sprintf("%s is damaged: its sum is not that in %s", f.Name(), sumsName))
		}
	}
	return problems, nil
}
