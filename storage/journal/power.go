package journal

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

// syncEvery is how often what was written is synced, so that a power cut costs no more than that.
const syncEvery = time.Second

// syncEverySecond syncs the files of the store in the background, until ctx ends.
func (j *Journal) syncEverySecond(ctx context.Context) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := j.syncFiles()
		if err != nil && !failing {
			j.options.logger().Error("the journal cannot be synced: a power cut may lose what was recorded", zap.Error(err))
		}
		failing = err != nil
	}
}

// syncFiles makes what was written survive a power cut. The files of other packages come first,
// because a record follows its charge, and the checkpoint last, because it says how far the other
// files reach. No lock is held while the disk works.
func (j *Journal) syncFiles() error {
	changed, _ := j.witness.syncOthers()
	written, err := j.log.syncEntries()
	if changed || written {
		_ = j.saveReach(false)
		err = errors.Join(err, j.checkpoints.sync())
	}
	return err
}

// SyncEntries makes the entries that were appended survive a power cut.
func (j *Journal) SyncEntries() error {
	_, err := j.log.syncEntries()
	return err
}

// syncEntries syncs the raw segments, and reports whether anything was written.
func (l *log) syncEntries() (changed bool, err error) {
	l.mu.Lock()
	var written []*segment
	var sizes []int64
	created := false
	for _, s := range l.unsealed {
		if s.synced < s.size && !s.leaving {
			s.refs++
			written, sizes = append(written, s), append(sizes, s.size)
			created = created || s.synced == 0
		}
	}
	l.mu.Unlock()
	var noDir error
	if created {
		noDir = SyncDir(l.dir)
	}
	err = noDir
	for i, s := range written {
		failed := s.file.sync()
		l.mu.Lock()
		if failed == nil && (noDir == nil || s.synced > 0) { // a new one waits until its name is synced, too
			s.synced = sizes[i]
		}
		l.unref(s)
		l.mu.Unlock()
		err = errors.Join(err, failed)
	}
	return len(written) > 0, err
}

// syncOthers syncs the files of other packages. changed reports whether one of them reaches
// further, and synced whether all are on the disk; the others log why they are not.
func (w *Witness) syncOthers() (changed, synced bool) {
	synced = true
	w.mu.Lock()
	attached := w.attached // a change replaces it
	w.mu.Unlock()
	for name, sync := range attached {
		if sync == nil {
			continue
		}
		is, ok := sync()
		if ok {
			changed = w.set(name, is) || changed
		}
		synced = synced && ok
	}
	return changed, synced
}

// sync syncs both files.
func (c *checkpoints) sync() error {
	c.mu.Lock()
	files := c.files
	c.mu.Unlock()
	return errors.Join(osFile{files[0].file}.sync(), osFile{files[1].file}.sync())
}
