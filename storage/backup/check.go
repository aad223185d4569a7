package backup

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	control "github.com/weirhq/weir/storage/control/embedded"
	credits "github.com/weirhq/weir/storage/credits/embedded"
	"github.com/weirhq/weir/storage/journal"
)

// journalSuffix ends the name of the journal's directory of a store that is a file. Before
// it stands the name of that file. Another journal has its records on a server.
const journalSuffix = ".segments"

// StoreReport is what Check has found of one store.
type StoreReport struct {
	// Path is the database; the journal if the store's database is on a server.
	Path string
	// Database is true if the database is a file. Then Check has checked the file, too.
	Database bool
	Records  int64 // in the database
	Journal  *journal.Report
	// Problems are what is wrong with the store, a sentence each.
	Problems []string
}

// Check reads all of the stores below path, which is a data directory, a backup, a
// database or a journal, and changes nothing. No process may use the stores. problems are the
// problems of the backup as a whole. file reads the databases.
func Check(ctx context.Context, path string, file storage.Checker) (reports []*StoreReport, problems []string, err error) {
	dirs, err := journals(path)
	if err != nil {
		return nil, nil, err
	}
	if len(dirs) == 0 {
		backup, err := newest(path)
		if err != nil {
			return nil, nil, fmt.Errorf("%s is no data directory: there is no journal in it", path)
		}
		return Check(ctx, backup, file)
	}
	if exists(filepath.Join(path, sumsName)) {
		if problems, err = verify(ctx, path); err != nil {
			return nil, nil, err
		}
	}
	for _, dir := range dirs {
		r, err := checkStore(ctx, dir, file)
		if err != nil {
			return nil, nil, err
		}
		reports = append(reports, r)
	}
	return reports, problems, nil
}

// journals are the journals of a database, of a data directory, or of a backup. A backup has
// a directory for each store. path may also be a journal.
func journals(path string) (dirs []string, err error) {
	if exists(path + journalSuffix) {
		return []string{path + journalSuffix}, nil
	}
	for _, pattern := range []string{"", "*", "*/*"} {
		found, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			return nil, err
		}
		for _, dir := range found {
			if strings.HasSuffix(dir, journalSuffix) || journal.Is(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs, nil
}

func checkStore(ctx context.Context, dir string, file storage.Checker) (*StoreReport, error) {
	r := &StoreReport{}
	r.Path, r.Database = strings.CutSuffix(dir, journalSuffix)
	var backend func(uuid.UUID, func(*storage.Record)) (storage.Position, error)
	switch {
	case !r.Database:
	case exists(r.Path):
		backend = func(id uuid.UUID, match func(*storage.Record)) (storage.Position, error) {
			return file.CheckFile(ctx, r.Path, id, func(record *storage.Record) {
				r.Records++
				match(record)
			})
		}
	default:
		r.Problems = append(r.Problems, fmt.Sprintf("%s is not there: the journal is checked alone", r.Path))
	}
	var err error
	if r.Journal, err = journal.Check(ctx, dir, backend); err != nil {
		return nil, err
	}
	r.Problems = append(r.Problems, r.Journal.Problems...)
	for _, err := range []error{
		credits.Check(dir, r.Journal.Others[credits.FileName]),
		control.Check(dir, r.Journal.Others[control.FileName]),
	} {
		if err != nil {
			r.Problems = append(r.Problems, err.Error())
		}
	}
	return r, nil
}

// Forget makes the only store below path take a file as it is, which Weir refuses because it is
// gone or older than it was: control.db, credits or erasures; or, for checkpoint, each of these that is
// not there and that a lost checkpoint would know. A damaged control.db is moved aside. No process may
// use the store.
func Forget(path, file string) (dir string, err error) {
	if names := []string{control.FileName, credits.FileName, journal.ErasuresName, journal.CheckpointName}; !slices.Contains(names, file) {
		return "", fmt.Errorf("only %s can be forgotten, not %s", strings.Join(names, ", "), file)
	}
	dirs, err := journals(path)
	if err != nil {
		return "", err
	}
	if len(dirs) != 1 {
		return "", fmt.Errorf("%s has %d stores: name the directory of one journal", path, len(dirs))
	}
	known, err := journal.Forget(dirs[0], file)
	if err == nil && file == control.FileName {
		var damaged bool
		damaged, err = control.Forget(dirs[0])
		known = known || damaged
	}
	if err == nil && !known && file != credits.FileName {
		if err = fmt.Errorf("%s has nothing to forget: its checkpoint knows no %s", dirs[0], file); file == journal.CheckpointName {
			err = fmt.Errorf("%s has nothing to forget: its checkpoint was not lost, or its loss is accepted already", dirs[0])
		}
	}
	if err == nil && file == credits.FileName {
		err = credits.Forget(dirs[0])
	}
	return dirs[0], err
}
