package journal

import (
	"context"
	"os"
	"path/filepath"
	"slices"
)

// Backup hands out the directory as one moment has it, which is what the end of the
// process at that moment would have left. Nothing is appended while freeze is called,
// with the names of the files that go on changing, and the backend is written nothing.
// Then copy is called with the names of the segments, which stay as they are until it
// returns, while traffic is recorded: only maintenance waits.
func (j *Journal) Backup(ctx context.Context, freeze, copy func(names []string) error) error {
	select {
	case j.maintenance.turn <- struct{}{}:
		defer func() { <-j.maintenance.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	segments, err := j.freeze(freeze)
	if err != nil {
		return err
	}
	return copy(segments)
}

func (j *Journal) freeze(freeze func(names []string) error) (segments []string, err error) {
	j.delivery.writer.Lock() // first, since it may be held for as long as the backend takes
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
		case f.Type().IsRegular() && name != lockName && !slices.Contains(apart, filepath.Ext(name)):
			changing = append(changing, name)
		}
	}
	return segments, freeze(changing)
}

// apart are the suffixes of files that are not copied as they are: files that will replace
// other files, and databases, which are copied by their owners.
var apart = []string{temporarySuffix, ".new", ".db", ".db-wal", ".db-shm"}
