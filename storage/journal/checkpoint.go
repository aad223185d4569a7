package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// The files of the checkpoint in the journal's directory. Both have the same, so that either is
// the witness of the other.
const (
	checkpointName = "checkpoint"
	witnessName    = "witness"
)

// checkpoint is what the journal knows of itself and of the backend's progress. It is
// written before each batch and after it.
type checkpoint struct {
	// Journal is the journal's identity.
	Journal uuid.UUID
	// Position is how far the backend is, Cut the end of the batch behind it that
	// was written to the backend last, so that it is written again as it was.
	Position, Cut storage.Position
	// Recorded, Number and Losses (of lossWire) are the ledger at Position.
	Recorded int64
	Number   uint64
	Losses   [][]byte
	// Held are the entries before Position that the backend has not been given,
	// because their exchanges lived.
	Held []storage.Position
	// Pruned is the time before which retention has deleted records from the backend, 0 if
	// retention has not deleted records.
	Pruned storage.Timestamp `json:",omitempty"`
	// Reach is how far the files of the store reach, nil in a checkpoint of a version that did
	// not know.
	Reach *reach `json:",omitempty"`
}

// The file has two slots, which take turns: a write that is cut short leaves the other
// slot. Both slots have their room on the disk from the start, since the checkpoint must
// be written when the disk is full, too.
const (
	slotSize = 256 << 10
	slotHead = 4 + 4 + 8 // checksum of what follows, length, sequence number
)

type checkpointFile struct {
	file     *os.File
	sequence uint64
}

// open opens a file of that name, or makes it. found is false if the file has no checkpoint.
func (f *checkpointFile) open(dir, name string, s *checkpoint) (found bool, err error) {
	if f.file, err = os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return false, err
	}
	b := make([]byte, 2*slotSize)
	n, err := f.file.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if n < len(b) {
		// Written, not only made longer: a hole has no room on the disk.
		_, err = f.file.WriteAt(b[n:], int64(n))
	} else {
		err = nil
	}
	*s, f.sequence, found = readCheckpoint(b)
	return found, err
}

// readCheckpoint reads the later of the two slots of a file.
func readCheckpoint(b []byte) (s checkpoint, sequence uint64, found bool) {
	for ; len(b) >= slotSize; b = b[slotSize:] {
		slot := b[:slotSize]
		length := int(order.Uint32(slot[4:]))
		if length > slotSize-slotHead || order.Uint32(slot) != crc32.Checksum(slot[4:slotHead+length], castagnoli) {
			continue
		}
		var candidate checkpoint
		if n := order.Uint64(slot[8:]); n > sequence && json.Unmarshal(slot[slotHead:slotHead+length], &candidate) == nil {
			s, sequence, found = candidate, n, true
		}
	}
	return s, sequence, found
}

// write writes a checkpoint in the older slot.
func (f *checkpointFile) write(text []byte, sequence uint64, sync bool) error {
	b := make([]byte, slotHead, slotHead+len(text))
	order.PutUint32(b[4:], uint32(len(text)))
	order.PutUint64(b[8:], sequence)
	b = append(b, text...)
	order.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	if _, err := f.file.WriteAt(b, int64(sequence%2)*slotSize); err != nil {
		return err
	}
	f.sequence = sequence
	if sync {
		return f.file.Sync()
	}
	return nil
}

func (f *checkpointFile) close() {
	if f.file != nil {
		f.file.Close()
	}
}

// checkpoints writes the checkpoint and its copy.
type checkpoints struct {
	// mu comes before that of the journal. It guards all fields.
	mu    sync.Mutex
	files [2]checkpointFile // of checkpointNames
	last  checkpoint        // as it was written, or should have been
	err   error             // why the checkpoint cannot be written
}

var checkpointNames = [2]string{checkpointName, witnessName}

// open opens both files, or makes them, and reads the later checkpoint. found is false if there
// is none.
func (c *checkpoints) open(dir string, s *checkpoint) (damage []FileDamage, found bool, err error) {
	var all [2]checkpoint
	var there [2]bool
	for i, name := range checkpointNames {
		if there[i], err = c.files[i].open(dir, name, &all[i]); err != nil {
			return nil, false, err
		}
	}
	later := 0
	if c.files[1].sequence > c.files[0].sequence {
		later = 1
	}
	*s, c.last = all[later], all[later]
	return compareCopies(later, there, s.Reach), there[later], nil
}

// compareCopies says whether the files have both had a checkpoint, of which one is the later. A
// crash leaves one file a checkpoint behind.
func compareCopies(later int, there [2]bool, r *reach) []FileDamage {
	if r == nil || there[1-later] {
		return nil
	}
	return []FileDamage{{File: checkpointNames[1-later], Found: "is gone or damaged: " + checkpointNames[later] + " has the same"}}
}

// readCheckpoints reads the later checkpoint of a directory, and changes nothing.
func readCheckpoints(dir string) (damage []FileDamage, s checkpoint, err error) {
	var there [2]bool
	later, sequence := 0, uint64(0)
	for i, name := range checkpointNames {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, s, err
		}
		var c checkpoint
		var n uint64
		if c, n, there[i] = readCheckpoint(text); n > sequence {
			s, later, sequence = c, i, n
		}
	}
	if !there[later] {
		return nil, s, fmt.Errorf("%s and %s are gone or damaged", checkpointName, witnessName)
	}
	return compareCopies(later, there, s.Reach), s, nil
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

// saveCheckpoint writes the checkpoint, with cut as the end of the batch that comes next. A
// failure costs no more than batches that are written twice after a crash.
func (j *Journal) saveCheckpoint(cut storage.Position) {
	j.checkpoints.mu.Lock()
	defer j.checkpoints.mu.Unlock()
	j.mu.Lock()
	o := j.options.Load()
	s := checkpoint{
		Journal: j.identity, Position: j.delivery.position, Cut: cut,
		Held: j.versions.held.positions(), Pruned: j.checkpoints.last.Pruned, Reach: j.reach(),
	}
	j.ledger.save(&s)
	j.mu.Unlock()
	err := j.checkpoints.write(&s, o.Sync)
	if err != nil && j.checkpoints.err == nil {
		o.Logger.Error("the checkpoint of the journal cannot be written: after a crash, the backend gets records again", zap.Error(err))
	}
	j.checkpoints.err = err
}

// savePruned remembers that retention deletes the records from before a time. Check must
// not miss them.
func (j *Journal) savePruned(before storage.Timestamp, sync bool) error {
	j.checkpoints.mu.Lock()
	defer j.checkpoints.mu.Unlock()
	s := j.checkpoints.last
	if before <= s.Pruned {
		return nil
	}
	s.Pruned = before
	return j.checkpoints.write(&s, sync)
}

// saveReach writes how far the files reach, with the rest of the last checkpoint.
func (j *Journal) saveReach(sync bool) {
	j.checkpoints.mu.Lock()
	defer j.checkpoints.mu.Unlock()
	s := j.checkpoints.last
	j.mu.Lock()
	s.Reach = j.reach()
	j.mu.Unlock()
	j.checkpoints.err = j.checkpoints.write(&s, sync)
}
