package backup

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits/embedded"
	"github.com/weirhq/weir/storage/journal"
)

// journalSuffix ends the name of a journal's directory. Before it stands the name of the
// backend's file.
const journalSuffix = ".segments"

// StoreReport is what Check has found of one store.
type StoreReport struct {
	// Path is the database.
	Path    string
	Records int64 // in the database
	Journal *journal.Report
	// Problems are what is wrong with it, a sentence each.
	Problems []string
}

// Check reads all of the stores below path, which is a data directory, a backup or a
// database, and changes nothing. No process may use them. problems are those of the
// backup as a whole. file reads the databases.
func Check(ctx context.Context, path string, file storage.Checker) (reports []*StoreReport, problems []string, err error) {
	dirs, err := journals(path)
	if err != nil {
		return nil, nil, err
	}
	if len(dirs) == 0 {
		backup, err := newest(path)
		if err != nil {
			return nil, nil, fmt.Errorf("%s is no data directory: nothing in it ends in %s", path, journalSuffix)
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

// journals are the journals of a database, of a data directory, or of a backup, which has
// a directory for each store.
func journals(path string) (dirs []string, err error) {
	if exists(path + journalSuffix) {
		return []string{path + journalSuffix}, nil
	}
	for _, pattern := range []string{"*" + journalSuffix, "*/*" + journalSuffix} {
		found, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, found...)
	}
	return dirs, nil
}

func checkStore(ctx context.Context, dir string, file storage.Checker) (*StoreReport, error) {
	r := &StoreReport{Path: strings.TrimSuffix(dir, journalSuffix)}
	var backend func(uuid.UUID, func(*storage.Record)) (storage.Position, error)
	if exists(r.Path) {
		backend = func(id uuid.UUID, match func(*storage.Record)) (storage.Position, error) {
			return file.CheckFile(ctx, r.Path, id, func(record *storage.Record) {
				r.Records++
				match(record)
			})
		}
	} else {
		r.Problems = append(r.Problems, fmt.Sprintf("%s is not there: the journal is checked alone", r.Path))
	}
	var err error
	if r.Journal, err = journal.Check(ctx, dir, backend); err != nil {
		return nil, err
	}
	r.Problems = append(r.Problems, r.Journal.Problems...)
	if err := embedded.Check(dir); err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
	return r, nil
}
