package journal

import (
	"context"
	"os"
	"path/filepath"
	"slices"
)

// Backup gives its caller the files of the directory as a crash at one moment would leave them.
// It calls freeze with the names of the files that change. Until freeze returns, nothing is
// appended and nothing is written to the backend. Then it calls copy with the names of the
// segments. Until copy returns, segments do not change: calls are recorded meanwhile, and
// maintenance waits.
func (j *Journal) Backup(ctx context.Context, freeze, copy func(names []string) error) error {
	if !j.maintenance.takeTurn(ctx) {
		return ctx.Err()
	}
	defer j.maintenance.giveTurn()
	j.maintenance.restoreDatabase(ctx)
	segments, err := j.freeze(freeze)
	if err != nil {
		return err
	}
	return copy(segments)
}

func (j *Journal) freeze(freeze func(names []string) error) (segments []string, err error) {
	j.delivery.writer.Lock() // first: the backend may hold it for long, and nothing else should wait
	defer j.delivery.writer.Unlock()
	j.log.turn.Lock()
	defer j.log.turn.Unlock()
	j.checkpoints.mu.Lock()
	defer j.checkpoints.mu.Unlock()
	if j.log.active != nil && j.log.active.entries > 0 {
		j.log.close(j.log.active)
	}
	files, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, err
	}
	var changing []string
	for _, f := range files {
		switch name := f.Name(); {
		case filepath.Ext(name) == rawSuffix, filepath.Ext(name) == sealedSuffix:
			segments = append(segments, name)
		case f.Type().IsRegular() && name != lockName && !slices.Contains(uncopiedSuffixes, filepath.Ext(name)):
			changing = append(changing, name)
		}
	}
	return segments, freeze(changing)
}

// uncopiedSuffixes are the suffixes of files that a backup does not copy from the directory: files that
// will replace other files, grams, which are made again, and databases, which their owners copy.
var uncopiedSuffixes = []string{temporarySuffix, gramsSuffix, ".new", ".db", ".db-wal", ".db-shm"}
