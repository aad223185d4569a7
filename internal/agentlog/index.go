package agentlog

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/internal/disk"
)

// indexFormat is another number whenever files are read, or the index is written, in another way.
// An index of another format is not used.
const indexFormat = 2

// Open returns a Reader that goes on where another one saved its index, or begins anew if there is
// none that can be used. Without a path, nothing is saved.
func Open(index string) *Reader {
	r := &Reader{index: index}
	text, err := os.ReadFile(index)
	if err != nil || len(text) < crc32.Size {
		return r
	}
	text, sum := text[:len(text)-crc32.Size], text[len(text)-crc32.Size:]
	if crc32.ChecksumIEEE(text) != binary.BigEndian.Uint32(sum) {
		return r
	}
	from := gob.NewDecoder(bytes.NewReader(text))
	var format, files int
	if err := errors.Join(from.Decode(&format), from.Decode(&files)); err != nil || format != indexFormat {
		return r
	}
	for range files {
		f := new(file)
		if err := from.Decode(f); err != nil { // by a Weir whose calls have other fields
			return &Reader{index: index}
		}
		r.files = append(r.files, f)
	}
	return r
}

// Save writes the index, which has no contents of calls. The user alone can read it.
func (r *Reader) Save() error {
	if r.index == "" || !r.unsaved {
		return nil
	}
	var text bytes.Buffer
	to := gob.NewEncoder(&text)
	err := errors.Join(to.Encode(indexFormat), to.Encode(len(r.files)))
	for _, f := range r.files {
		err = errors.Join(err, to.Encode(f))
	}
	if err = errors.Join(err, os.MkdirAll(filepath.Dir(r.index), 0o700)); err != nil {
		return err
	}
	err = disk.Replace(r.index, binary.BigEndian.AppendUint32(text.Bytes(), crc32.ChecksumIEEE(text.Bytes())), 0o600)
	r.unsaved = err != nil
	return err
}
