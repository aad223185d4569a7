package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/weirhq/weir/plugins/body"
	"github.com/weirhq/weir/storage"
)

// Content implements storage.Contents.
func (j *Journal) Content(ctx context.Context, ref storage.ContentRef) (*storage.Content, error) {
	if ref == (storage.ContentRef{}) {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	j.mu.Lock()
	s := j.acquire(ref.Segment)
	if s == nil {
		j.mu.Unlock()
		// Sealing completes the sealed file before it lets go of the raw one.
		return j.blocks.content(ref, j.path(ref.Segment, sealedSuffix))
	}
	scan := s.scanner(ref.Ordinal, headWindow)
	j.mu.Unlock()
	defer j.release(s)

	e, err := scan.seek(ref.Ordinal)
	if errors.Is(err, io.EOF) || err == nil && (e.ordinal != ref.Ordinal || e.length == 0) {
		return nil, nil
	}
	var c *storage.Content
	if err == nil {
		c, err = s.stored(&e)
	}
	if err != nil {
		return nil, fmt.Errorf("reading entry %d of %s: %w", ref.Ordinal, s.path, err)
	}
	return c, nil
}

// headWindow suits reading heads that have content between them.
const headWindow = 4 << 10

// stored is the content of a record's entry in stored form.
func (s *segment) stored(e *entry) (*storage.Content, error) {
	var r storage.Record
	if err := dialectWire.parse(e.metadata, &r); err != nil {
		return nil, err
	}
	c, err := s.content(e)
	if err != nil {
		return nil, err
	}
	c.Response.Data, c.Response.Type = body.Stored(r.Dialect, c.Response.Type, c.Response.Data)
	return c, nil
}

// dialectWire reads no more of a record than its dialect.
var dialectWire = message[record]{11: recordWire[11]}

// blocks reads sealed segments. It keeps a few blocks, because those who read
// content read that of neighbours.
type blocks struct {
	mu      sync.Mutex
	sealed  map[uint64]sealed
	recent  []cached // the last used last
	bytes   int
	decoder *zstd.Decoder
	used    bool // since the last rest
}

// sealed is what is known of a sealed segment without reading it.
type sealed struct {
	size   int64
	newest moment
}

type cached struct {
	segment     uint64
	first, next uint32
	data        []byte
}

// cacheBytes bounds the decompressed blocks that are kept.
const cacheBytes = 2 << 20

func (b *blocks) content(ref storage.ContentRef, path string) (*storage.Content, error) {
	data, err := b.block(ref, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var c *storage.Content
	if err == nil {
		c, err = findContent(data, ref.Ordinal)
	}
	if err != nil {
		return nil, fmt.Errorf("reading entry %d of %s: %w", ref.Ordinal, path, err)
	}
	return c, nil
}

func (b *blocks) block(ref storage.ContentRef, path string) ([]byte, error) {
	b.mu.Lock()
	b.used = true
	for i := len(b.recent) - 1; i >= 0; i-- {
		c := b.recent[i]
		if c.segment == ref.Segment && c.first <= ref.Ordinal && ref.Ordinal < c.next {
			b.recent = append(slices.Delete(b.recent, i, i+1), c)
			b.mu.Unlock()
			return c.data, nil
		}
	}
	if b.decoder == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(1<<32))
		if err != nil {
			b.mu.Unlock()
			return nil, err
		}
		b.decoder = d
	}
	decoder := b.decoder
	b.mu.Unlock()

	f, size, err := openSealed(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, first, next, err := readBlock(f, size, ref.Ordinal, decoder)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.sealed[ref.Segment]; !there || len(data) > cacheBytes {
		return data, nil
	}
	b.recent = append(b.recent, cached{ref.Segment, first, next, data})
	b.bytes += len(data)
	for b.bytes > cacheBytes {
		b.bytes -= len(b.recent[0].data)
		b.recent = slices.Delete(b.recent, 0, 1)
	}
	return data, nil
}

// load enters the sealed segment in a file, also if it cannot be read: then it
// goes by the file's age.
func (b *blocks) load(number uint64, path string) error {
	f, size, err := openSealed(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, newest, err := readIndex(f, size)
	if err != nil {
		err = fmt.Errorf("%s %w", path, err)
		if info, statErr := f.Stat(); statErr == nil {
			newest = storage.Millis(info.ModTime())
		}
	}
	b.add(number, sealed{size, newest})
	return err
}

func (b *blocks) add(number uint64, s sealed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sealed == nil {
		b.sealed = map[uint64]sealed{}
	}
	b.sealed[number] = s
}

// expired lists the segments whose newest record is older than this.
func (b *blocks) expired(cutoff moment) []uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var numbers []uint64
	for number, s := range b.sealed {
		if s.newest < cutoff {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// remove deletes a sealed segment and forgets what it held.
func (b *blocks) remove(number uint64, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sealed, number)
	b.recent = slices.DeleteFunc(b.recent, func(c cached) bool {
		if c.segment != number {
			return false
		}
		b.bytes -= len(c.data)
		return true
	})
	return nil
}

func (b *blocks) total() (n int, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sealed {
		size += s.size
	}
	return len(b.sealed), size
}

// rest gives up memory that was not used since the last rest.
func (b *blocks) rest() {
	b.mu.Lock()
	used := b.used
	b.used = false
	b.mu.Unlock()
	if !used {
		b.release()
	}
}

func (b *blocks) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	// Who still decodes keeps the decoder, which has no goroutines to stop.
	b.recent, b.bytes, b.decoder = nil, 0, nil
}
