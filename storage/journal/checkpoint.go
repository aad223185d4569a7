package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// The files of the checkpoint in the journal's directory. Both have the same content, so that each
// shows whether the other is missing or damaged.
const (
	CheckpointName = "checkpoint"
	witnessName    = "witness"
)

// checkpoint is what the journal knows about itself and about the backend's progress. It is
// written before each batch and after it. The names in its JSON do not change.
type checkpoint struct {
	// Journal is the journal's identity.
	Journal uuid.UUID
	// Position is the position up to which the backend has all entries.
	Position storage.Position
	// BatchEnd is the end of the batch after Position that may already be in the backend. After
	// a crash the same batch is written again, with the same end.
	BatchEnd storage.Position `json:"Cut"`
	// Database distinguishes the database from another: see storage.Host.
	Database string `json:",omitempty"`
	// Recorded, Number and Losses (encoded by lossWire) are the ledger at Position.
	Recorded int64
	Number   uint64
	Losses   [][]byte
	// Held are the entries before Position that are held back from the backend, because their
	// exchanges had not ended.
	Held []storage.Position
	// Pruned is the time before which retention has deleted records from the backend, 0 if
	// retention has not deleted records.
	Pruned storage.Timestamp `json:",omitempty"`
	// Verified is when the backend last verified its files, 0 if it never did.
	Verified storage.Timestamp `json:",omitempty"`
	// Rebuild is where the backend was before it lost records, if it does not have these again.
	Rebuild storage.Position `json:",omitzero"`
	// Rebuilt are the sealed segments before Position whose records the backend got again, and how many
	// records, until the list of sealed segments is saved with them.
	Rebuilt map[uint64]recordCount `json:"Given,omitempty"`
	// Rejected (encoded by lossWire) are losses in the batch up to BatchEnd: the backend may have
	// the rest of the batch.
	Rejected [][]byte `json:",omitempty"`
	// Reach is how far the files of the store reach. It is nil if an older version, which did not
	// track it, wrote the checkpoint.
	Reach *reach `json:",omitempty"`
}

// checkpoints writes the checkpoint and its copy.
type checkpoints struct {
	// mu guards all fields. Whoever needs the journal's mutex as well locks mu first.
	mu    sync.Mutex
	files [2]checkpointFile // of checkpointNames
	last  checkpoint        // the one that was written last, or failed to be
	err   error             // of the last write
}

var checkpointNames = [2]string{CheckpointName, witnessName}

// open opens both files, or creates them, and reads the later checkpoint into s. found is false
// if there is no checkpoint.
func (c *checkpoints) open(dir string, s *checkpoint) (damage []FileDamage, found bool, err error) {
	var all [2]checkpoint
	var has [2]bool
	for i, name := range checkpointNames {
		if has[i], err = c.files[i].open(dir, name, &all[i]); err != nil {
			return nil, false, err
		}
	}
	later := 0
	if c.files[1].sequence > c.files[0].sequence {
		later = 1
	}
	*s, c.last = all[later], all[later]
	if has[0] && has[1] && all[0].Journal != all[1].Journal {
		return nil, false, errTwoJournals(dir, all[0].Journal, all[1].Journal)
	}
	return compareCopies(later, has, s.Reach), has[later], nil
}

// errTwoJournals says that the two files are not of one store: only whoever runs Weir knows which is
// the right one.
func errTwoJournals(dir string, first, second uuid.UUID) error {
	return fmt.Errorf("%s in %s is of the journal %s, and %s of %s: move the one of another store away",
		CheckpointName, dir, first, witnessName, second)
}

// compareCopies reports a file that has no checkpoint, although the other file has. An older
// checkpoint is no damage: a crash can leave one file a checkpoint behind. Before there was a
// reach, there was one file.
func compareCopies(later int, found [2]bool, r *reach) []FileDamage {
	if r == nil || found[1-later] {
		return nil
	}
	return []FileDamage{{File: checkpointNames[1-later], Found: "is gone or damaged: " + checkpointNames[later] + " has the same"}}
}

// readCheckpoints reads the later checkpoint of a directory, and changes nothing.
func readCheckpoints(dir string) (damage []FileDamage, s checkpoint, err error) {
	var has [2]bool
	var journals [2]uuid.UUID
	later, sequence := 0, uint64(0)
	for i, name := range checkpointNames {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, s, err
		}
		var c checkpoint
		var n uint64
		if c, n, has[i] = readCheckpoint(text); n > sequence {
			s, later, sequence = c, i, n
		}
		journals[i] = c.Journal
	}
	if has[0] && has[1] && journals[0] != journals[1] {
		return nil, s, errTwoJournals(dir, journals[0], journals[1])
	}
	if !has[later] {
		return nil, s, fmt.Errorf("%s and %s are gone or damaged", CheckpointName, witnessName)
	}
	return compareCopies(later, has, s.Reach), s, nil
}

// linked reports whether the files are still in their directory.
func (c *checkpoints) linked() bool {
	return linked(c.files[0].file, c.files[0].file.Name()) && linked(c.files[1].file, c.files[1].file.Name())
}

// reopen writes the last checkpoint to the files that now have the names, or to new files. The
// files of another journal are left alone.
func (c *checkpoints) reopen(dir string, journal uuid.UUID, sync bool) error {
	var fresh checkpoints
	var s checkpoint
	_, found, err := fresh.open(dir, &s)
	if err == nil && found && s.Journal != journal {
		err = fmt.Errorf("%s belongs to another journal", fresh.files[0].file.Name())
	}
	if err == nil {
		err = fresh.write(&c.last, sync)
	}
	if err != nil {
		fresh.close()
		return err
	}
	c.close()
	c.files = fresh.files
	return nil
}

func (c *checkpoints) write(s *checkpoint, sync bool) error {
	c.last = *s
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(text) > slotSize-slotHead {
		return fmt.Errorf("%s: the checkpoint has %d bytes, and there is room for %d", c.files[0].file.Name(), len(text), slotSize-slotHead)
	}
	sequence := max(c.files[0].sequence, c.files[1].sequence) + 1
	return errors.Join(c.files[0].write(text, sequence, sync), c.files[1].write(text, sequence, sync))
}

func (c *checkpoints) close() {
	for i := range c.files {
		c.files[i].close()
	}
}

// saveCheckpoint writes the checkpoint, with the end of the batch that is written next. After a
// failure, a crash only makes the journal write batches to the backend again.
func (j *Journal) saveCheckpoint(batchEnd storage.Position) {
	j.checkpoints.mu.Lock()
	defer j.checkpoints.mu.Unlock()
	j.mu.Lock()
	o := j.options.Load()
	s := checkpoint{
		Journal: j.identity, Position: j.delivery.position, BatchEnd: batchEnd,
		Database: j.delivery.database,
		Held:     j.versions.held.positions(), Pruned: j.checkpoints.last.Pruned, Verified: j.checkpoints.last.Verified, Reach: j.reach(),
		Rebuilt: maps.Clone(j.delivery.rebuilt), Rejected: marshalLosses(j.delivery.rejected),
	}
	if s.Position.Before(j.delivery.rebuild) {
		s.Rebuild = j.delivery.rebuild
	}
	j.ledger.save(&s)
	j.mu.Unlock()
	err := j.checkpoints.write(&s, o.Sync)
	if err != nil && j.checkpoints.err == nil {
		o.Logger.Error("the checkpoint of the journal cannot be written: after a crash, the backend gets records again", zap.Error(err))
	}
	j.checkpoints.err = err
}

// pruned is the time before which retention has deleted records, 0 if it has deleted none.
func (c *checkpoints) pruned() moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.Pruned
}

// savePruned notes that retention deletes the records from before a time, so that Check does not
// report them as missing.
func (c *checkpoints) savePruned(before storage.Timestamp, sync bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.last
	if before <= s.Pruned {
		return nil
	}
	s.Pruned = before
	return c.write(&s, sync)
}

// verified is when the backend last verified its files, 0 if it never did.
func (c *checkpoints) verified() moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.Verified
}

// saveVerified notes that the backend has verified its files.
func (c *checkpoints) saveVerified(at storage.Timestamp) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.last
	s.Verified = at
	return c.write(&s, false)
}

// saveReach writes how far the files reach, with the rest of the last checkpoint. After a failure,
// the next checkpoint says it.
func (j *Journal) saveReach(sync bool) error {
	j.checkpoints.mu.Lock()
	defer j.checkpoints.mu.Unlock()
	s := j.checkpoints.last
	j.mu.Lock()
	s.Reach = j.reach()
	j.mu.Unlock()
	j.checkpoints.err = j.checkpoints.write(&s, sync)
	return j.checkpoints.err
}
