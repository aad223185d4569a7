package journal

import (
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// A checkpointFile has two slots, which take turns: a write that is cut short leaves the other
// slot. Both slots are allocated on the disk from the start, since the checkpoint must
// be written when the disk is full, too.
type checkpointFile struct {
	file     *os.File
	sequence uint64 // of the later slot, 0 if there is no checkpoint
}

// Sizes in a slot, in bytes.
const (
	slotSize = 256 << 10
	slotHead = 4 + 4 + 8 // checksum of what follows, length, sequence number
)

// open opens the file, or creates it, and reads its checkpoint into s. found is false if the file
// has no checkpoint.
func (f *checkpointFile) open(dir, name string, s *checkpoint) (found bool, err error) {
	if f.file, err = OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return false, err
	}
	b := make([]byte, 2*slotSize)
	n, err := f.file.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if n < len(b) {
		// Write zeros: a file that is only made longer has no blocks on the disk.
		_, err = f.file.WriteAt(b[n:], int64(n))
	} else {
		err = nil
	}
	*s, f.sequence, found = readCheckpoint(b)
	return found, err
}

// readCheckpoint reads the later of the two slots in the bytes of a file.
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
		return osFile{f.file}.sync()
	}
	return nil
}

func (f *checkpointFile) close() {
	if f.file != nil {
		f.file.Close()
	}
}
