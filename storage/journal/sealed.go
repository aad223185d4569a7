package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/weirhq/weir/storage"
)

// blocks knows the sealed segments.
type blocks struct {
	mu     sync.Mutex
	sealed map[uint64]sealed
}

// sealed is what is known of a sealed segment without reading it.
type sealed struct {
	size   int64
	newest moment
}

// load enters the sealed segment in a file, also if it cannot be read: then it
// goes by the file's age.
func (b *blocks) load(number uint64, path string) error {
	f, size, err := openSealed(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s := sealed{size: size}
	index, err := readIndex(f, size)
	if err == nil {
		s.newest = index.newest
	} else {
		err = fmt.Errorf("%s %w", path, err)
		if info, statErr := f.Stat(); statErr == nil {
			s.newest = storage.Millis(info.ModTime())
		}
	}
	b.add(number, s)
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

func (b *blocks) has(number uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, there := b.sealed[number]
	return there
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

// remove deletes a sealed segment. Those who read it may go on to do.
func (b *blocks) remove(number uint64, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sealed, number)
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
