package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// checkpointName is the file of the checkpoint in the journal's directory.
const checkpointName = "checkpoint"

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
	last     checkpoint // as it was written, or should have been
}

// open opens the file, or makes a file. found is false if the file has no checkpoint.
func (f *checkpointFile) open(dir string, s *checkpoint) (found bool, err error) {
	if f.file, err = os.OpenFile(filepath.Join(dir, checkpointName), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
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
	f.last = *s
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

// linked tells whether the file is still in its directory.
func (f *checkpointFile) linked() bool { return linked(f.file, f.file.Name()) }

// reopen writes the last checkpoint to the file that now has the name, or to a new
// file. The file of another journal is left alone.
func (f *checkpointFile) reopen(dir string, journal uuid.UUID, sync bool) error {
	var fresh checkpointFile
	var s checkpoint
	found, err := fresh.open(dir, &s)
	if err == nil && found && s.Journal != journal {
		err = fmt.Errorf("%s belongs to another journal", fresh.file.Name())
	}
	if err == nil {
		err = fresh.write(&f.last, sync)
	}
	if err != nil {
		fresh.close()
		return err
	}
	f.close()
	*f = fresh
	return nil
}

func (f *checkpointFile) write(s *checkpoint, sync bool) error {
	f.last = *s
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(text) > slotSize-slotHead {
		return fmt.Errorf("%s: the checkpoint has %d bytes, and there is room for %d", f.file.Name(), len(text), slotSize-slotHead)
	}
	sequence := f.sequence + 1
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

// checkpoints writes the checkpoint.
type checkpoints struct {
	mu   sync.Mutex // comes before that of the journal
	file checkpointFile
	err  error // why the checkpoint cannot be written
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
		Held: j.versions.held.positions(), Pruned: j.checkpoints.file.last.Pruned,
	}
	j.ledger.save(&s)
	j.mu.Unlock()
	err := j.checkpoints.file.write(&s, o.Sync)
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
	s := j.checkpoints.file.last
	if before <= s.Pruned {
		return nil
	}
	s.Pruned = before
	return j.checkpoints.file.write(&s, sync)
}
