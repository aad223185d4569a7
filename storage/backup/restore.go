package backup

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/storage/control/embedded"
	"github.com/weirhq/weir/storage/journal"
)

// Restore puts a store of a backup into a directory that has no files of the store. from is
// a backup, or a directory of backups: then Restore takes the newest. store is the store's
// name, "" if the backup has only one. The sums of all files are compared first. Erasures that
// came after the backup are repeated at the next start, and holds that were placed after it are
// in force again, as far as newer backups beside it know them, or the directories in later: those of
// a store that was moved away, or of a journal.
func Restore(ctx context.Context, from, to, store string, later ...string) (*Restored, error) {
	backup, err := find(from)
	if err != nil {
		return nil, err
	}
	problems, err := verify(ctx, backup)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("the backup is damaged; take another one: %s", strings.Join(problems, "; "))
	}
	if store, err = choose(backup, store); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(backup, store))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, err
	}
	for _, e := range entries {
		for _, suffix := range []string{"", "-wal", "-journal"} { // SQLite would take these for the database's
			if path := filepath.Join(to, e.Name()+suffix); exists(path) {
				return nil, fmt.Errorf("%s is there already; stop Weir and move it away", path)
			}
		}
	}
	// The files get their names when all are whole.
	temporary, err := os.MkdirTemp(to, "restore-*"+unfinished)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	if err := copyTree(ctx, temporary, filepath.Join(backup, store)); err != nil {
		return nil, err
	}
	beside, err := newer(backup, store)
	if err != nil {
		return nil, err
	}
	r := &Restored{Backup: backup}
	if err := r.takeLater(ctx, temporary, append(beside, later...)); err != nil {
		return nil, err
	}
	if err := changeOwner(to, temporary); err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(to, e.Name())
		if err := os.Rename(filepath.Join(temporary, e.Name()), path); err != nil {
			return nil, err
		}
		r.Files = append(r.Files, path)
	}
	return r, journal.SyncDir(to)
}

// Restored is what Restore has done.
type Restored struct {
	Backup string
	Files  []string
	// Erasures and Holds count those that came after the backup.
	Erasures, Holds int
}

// takeLater takes the erasures and the holds that other directories know into the journals of a
// directory.
func (r *Restored) takeLater(ctx context.Context, dir string, from []string) error {
	here, err := journals(dir)
	if err != nil {
		return err
	}
	for _, to := range here {
		for _, other := range from {
			there, err := journals(other)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(there, func(path string) bool { return filepath.Base(path) == filepath.Base(to) })
			if i < 0 {
				return fmt.Errorf("%s has no %s, whose erasures were to be repeated", other, filepath.Base(to))
			}
			erasures, err := journal.TakeErasures(to, there[i])
			if err != nil {
				return err
			}
			holds, err := embedded.TakeHolds(ctx, to, there[i])
			if err != nil {
				return err
			}
			r.Erasures, r.Holds = r.Erasures+erasures, r.Holds+holds
		}
	}
	return nil
}

// newer lists the store in the backups beside one that are newer.
func newer(backup, store string) (dirs []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(backup))
	for _, e := range entries {
		dir := filepath.Join(filepath.Dir(backup), e.Name(), store)
		if _, notOne := time.Parse(nameFormat, e.Name()); notOne == nil && e.Name() > filepath.Base(backup) && exists(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, err
}

// find is the backup that a directory is, or else the newest in it.
func find(dir string) (string, error) {
	if exists(filepath.Join(dir, sumsName)) {
		return dir, nil
	}
	return newest(dir)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// choose is the store of that name in a backup, or the only one.
func choose(backup, store string) (string, error) {
	entries, err := os.ReadDir(backup)
	if err != nil {
		return "", err
	}
	var stores []string
	for _, e := range entries {
		if e.IsDir() {
			stores = append(stores, e.Name())
		}
	}
	switch {
	case store == "" && len(stores) == 1:
		return stores[0], nil
	case store == "":
		return "", fmt.Errorf("%s has several stores: name one of %s", backup, strings.Join(stores, ", "))
	case !slices.Contains(stores, store):
		return "", fmt.Errorf("%s has no store %q: name one of %s", backup, store, strings.Join(stores, ", "))
	}
	return store, nil
}

// copyTree copies the files of a directory, so that they survive a power cut.
func copyTree(ctx context.Context, to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		if err := copyFile(ctx, target, path); err != nil {
			return err
		}
		_, err = sumAndSync(ctx, target)
		return err
	})
}
