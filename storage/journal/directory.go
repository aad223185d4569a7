package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

// checkEvery is how often appends look whether the directory is still there: a look
// costs more than a small append.
const checkEvery = 10 * time.Millisecond

// probeName is the file that Ready writes. The next start deletes the file if it is left.
const probeName = "probe" + temporarySuffix

// A probe writes as much as the largest group so far, within these bounds.
const (
	minProbe = 64 << 10
	maxProbe = 1 << 20
)

// Ready tells why a record that is appended now would be lost; nil means that the
// journal can be written. It writes a file of its own, since a journal without
// traffic learns nothing of its disk.
func (j *Journal) Ready() error {
	j.log.turn.Lock()
	defer j.log.turn.Unlock()
	j.mu.Lock()
	closed, full := j.closed, j.full || j.pendingBytes >= j.options.Load().MaxBytes
	j.mu.Unlock()
	switch {
	case closed:
		return errClosed
	case full:
		return ErrFull
	}
	err := j.checkDirectory()
	if err == nil {
		err = j.log.probe()
	}
	if err != nil {
		return fmt.Errorf("the journal cannot be written: %w", err)
	}
	return nil
}

// probe writes and deletes a file. It needs the turn.
func (l *log) probe() error {
	o := l.options.Load()
	path := filepath.Join(l.dir, probeName)
	f, err := o.open(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR)
	if err != nil {
		return err
	}
	err = f.write([][]byte{make([]byte, min(max(l.largest, minProbe), maxProbe))}, 0)
	if err == nil && o.Sync {
		err = f.sync()
	}
	return errors.Join(err, f.Close(), os.Remove(path))
}

// checkDirectory makes sure that what is appended next stands where the next process
// looks for it. If the directory or a file in it was deleted or replaced, checkDirectory
// makes them anew: the drain goes on from the open files, and sealing writes the content
// of the open files to the new place. It needs the turn.
func (j *Journal) checkDirectory() error {
	o := j.options.Load()
	j.log.checkedAt = time.Now()
	gone := j.log.active != nil && !linked(j.log.active.file, j.log.active.path)
	if !gone && linked(j.lock, j.lock.Name()) && j.ledger.linked() && j.checkpoints.linked() {
		return nil
	}
	if j.log.active != nil {
		j.log.close(j.log.active)
	}
	if err := j.makeAnew(); err != nil {
		if !j.checkpoints.linked() || !j.ledger.linked() {
			err = errors.Join(err, os.MkdirAll(spareDir(j.dir), 0o700), j.keepIn(spareDir(j.dir)))
		}
		return fmt.Errorf("files of %s have been deleted or replaced: %w", j.dir, err)
	}
	o.Logger.Error("files of the journal had been deleted or replaced, and were made anew", zap.String("directory", j.dir))
	return nil
}

// makeAnew takes possession of what has the directory's name now.
func (j *Journal) makeAnew() error {
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return err
	}
	if !linked(j.lock, j.lock.Name()) {
		l, err := lock(j.dir)
		if err != nil {
			return err
		}
		j.lock.Close()
		j.lock = l
	}
	if err := j.keepIn(j.dir); err != nil {
		return err
	}
	j.witness.checkSealed()
	return os.RemoveAll(spareDir(j.dir))
}

// keepIn writes the checkpoint and the count of the exchanges in a directory from now on.
func (j *Journal) keepIn(dir string) error {
	o := j.options.Load()
	j.checkpoints.mu.Lock()
	defer j.checkpoints.mu.Unlock()
	if err := j.checkpoints.reopen(dir, j.identity, o.Sync); err != nil {
		return err
	}
	return j.ledger.reopen(dir)
}

// spareDir is where the checkpoint and the count of the exchanges are while the directory
// of the journal cannot be made: what is lost then is known after a restart.
func spareDir(dir string) string { return dir + ".spare" }

// takeSpare moves back what an earlier process has left in spareDir, unless the directory
// now belongs to another journal.
func takeSpare(dir string) error {
	spare := spareDir(dir)
	text, err := os.ReadFile(filepath.Join(spare, CheckpointName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	ours, _, _ := readCheckpoint(text)
	text, err = os.ReadFile(filepath.Join(dir, CheckpointName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if there, _, found := readCheckpoint(text); found && there.Journal != ours.Journal {
		return nil
	}
	for _, name := range []string{counterName, witnessName, CheckpointName} {
		if err := Rename(filepath.Join(spare, name), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.RemoveAll(spare)
}

// linked reports whether path still names the open file f.
func linked(f interface{ Stat() (os.FileInfo, error) }, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}
