package embedded

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/journal"
)

// sync makes what was written survive a power cut, and returns how far the file then reaches. No
// lock is held while the disk works.
func (l *Ledger) sync() (is journal.Reach, ok bool) {
	l.mu.Lock()
	failing := l.failing
	l.mu.Unlock()
	if failing && l.flush() != nil {
		return is, false
	}
	l.turn.Lock()
	f, is := l.file.f, l.file.reach()
	synced := l.file.synced == is.Size
	l.turn.Unlock()
	if f == nil || synced {
		return is, f != nil
	}
	if err := l.file.sync(f); err != nil {
		if !errors.Is(err, os.ErrClosed) { // else its balances replaced it
			l.file.logger.Error("charges may not survive a power cut", zap.String("file", l.file.path), zap.Error(err))
		}
		return is, false
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.file.state.Generation == is.Generation {
		l.file.synced = is.Size
	}
	return is, true
}

// maxSpare bounds the memory that is used again, in bytes: lines may have waited for a disk.
const maxSpare = 1 << 20

// flush writes the lines that wait, also the lines of other goroutines.
func (l *Ledger) flush() error {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.compact()
	l.mu.Lock()
	lines := l.lines
	l.lines, l.spare = l.spare, nil
	l.mu.Unlock()
	err := l.file.append(lines, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failing = err != nil
	if err != nil {
		l.lines = append(lines, l.lines...)
		return unavailable(err)
	}
	if cap(lines) <= maxSpare {
		l.spare = lines[:0]
	}
	return nil
}

// compact replaces the file by its balances when it has grown, with the charges
// that wait. It needs turn.
func (l *Ledger) compact() {
	if !l.file.full() {
		return
	}
	l.mu.Lock()
	l.accounts.expire(storage.Millis(time.Now()))
	l.generation++ // charges from now on are lines after the balances
	next := state{Generation: l.generation, Counted: l.file.end(), ID: cmp.Or(l.file.state.ID, rand.Uint32())}
	all, lines := l.accounts.list(func(credits.Account) bool { return true }), l.lines
	l.lines = nil
	var open []entry
	for _, stored := range l.reservations {
		if stored.Lost > 0 || stored.charged != 0 { // the record of a charge may come after the balances
			open = append(open, stored.line())
		}
	}
	l.mu.Unlock()
	if err := l.file.replace(all, open, next); err != nil {
		l.file.logger.Error("the credits cannot be compacted: the file grows until they can", zap.String("file", l.file.path), zap.Error(err))
		l.mu.Lock()
		l.lines = append(lines, l.lines...)
		l.mu.Unlock()
	}
}

// Close implements credits.Ledger.
func (l *Ledger) Close(context.Context) error {
	err := l.flush()
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	err = errors.Join(err, l.file.close())
	if l.detach != nil {
		l.file.journal.Witness().Note(FileName, l.file.reach())
		l.detach()
	}
	return err
}
