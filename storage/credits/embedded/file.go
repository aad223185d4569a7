package embedded

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/journal"
)

// file is the file of a ledger: a header, the balances at that time, and one line
// for each grant, reservation, charge and release since then. A line is the CRC-32C of
// its JSON and the JSON. Beside the file is its state. The state distinguishes a file that
// was deleted, cut or replaced by an older file from a new ledger and from a crash.
type file struct {
	path    string
	journal *journal.Journal // knows how far the file must reach; nil if nothing does
	logger  *zap.Logger
	sync    func(*os.File) error // tests replace it

	f     *os.File // nil when closed
	size  int64    // length of the whole lines, in bytes
	torn  bool     // there may be more bytes than size
	state state
	// certain is how far the file reached, in bytes, when the journal had synced the records of all
	// calls that had ended.
	certain int64
	// synced is how much of size the disk is sure to have, in bytes.
	synced int64
	// limit is the size, in bytes, from which the file is replaced by its balances:
	// minLimit, or twice the size of the balances if that is more.
	limit, minLimit int64
}

// open opens the file, or creates it, and hands its entries to apply.
func (f *file) open(apply func(entry)) error {
	err := f.read(os.O_RDWR, apply)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.compare(); err != nil {
			return err
		}
		return f.replace(nil, nil, state{Generation: 1, Counted: f.end(), ID: rand.Uint32()})
	}
	if err == nil {
		err = f.compare()
	}
	if err == nil {
		err = errors.Join(f.cut(), f.saveState())
	}
	if err != nil && f.f != nil {
		return errors.Join(err, f.f.Close())
	}
	f.limit = max(f.minLimit, f.size)
	return err
}

// read opens the file and hands its entries to apply. The error is fs.ErrNotExist if there is
// no file, and never was.
func (f *file) read(flag int, apply func(entry)) error {
	var witness state
	saved, err := os.ReadFile(f.statePath())
	switch {
	case err == nil && !parseLine(saved, &witness):
		return f.refuse("its state is damaged")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f.f, err = journal.OpenFile(f.path, flag, 0)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist) && witness.Generation > 0:
		return f.refuse("it has been deleted")
	default:
		return err
	}
	err = f.load(witness, apply)
	if err == nil && witness.ID != 0 && f.state.ID != witness.ID {
		err = f.refuse("it is that of another store")
	}
	if err == nil && (f.state.Generation < witness.Generation || f.state.Generation == witness.Generation && f.size < witness.Size) {
		err = f.refuse("it has been cut, or replaced by an older one")
	}
	return err
}

func (f *file) statePath() string { return f.path + ".state" }

// refuse returns why nothing can be spent until an operator has decided.
func (f *file) refuse(why string) error {
	refused := &journal.RefusedFileError{Path: f.path, Found: "cannot be trusted, because " + why}
	if f.journal != nil {
		f.journal.Witness().Damaged(FileName, refused.Found+": what depends on it is refused")
	}
	return fmt.Errorf("%w; or move the file away, to begin again with the configured grants", refused)
}

// load reads the file. Lines at its end that are not whole are what a crash left.
func (f *file) load(witness state, apply func(entry)) error {
	lines := bufio.NewReader(f.f)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		var e entry
		switch complete := err == nil; {
		case n == 1:
			if !complete || !parseLine(line, &f.state) || f.state.Generation == 0 {
				return f.refuse("line 1 is damaged")
			}
			f.trust(witness)
		case complete && parseLine(line, &e):
			if f.torn {
				return f.refuse(fmt.Sprintf("a line before line %d is damaged", n))
			}
			apply(e)
		default:
			f.torn = f.torn || len(line) > 0
		}
		if err == io.EOF {
			return nil
		}
		if !f.torn {
			f.size += int64(len(line))
		}
	}
}

// trust finds out which lines are certain. witness is the state beside the file.
func (f *file) trust(witness state) {
	f.certain = math.MaxInt64
	if f.journal == nil {
		return
	}
	f.certain = 0
	if witness.Generation == f.state.Generation {
		f.certain = witness.Size
	}
	if known := f.journal.Witness().Reached(filepath.Base(f.path)); known.Generation == f.state.Generation {
		f.certain = max(f.certain, known.Size)
	}
}

// cut removes what an interrupted write has left.
func (f *file) cut() error {
	if f.f == nil {
		return os.ErrClosed
	}
	if !f.torn {
		return nil
	}
	if err := f.f.Truncate(f.size); err != nil {
		return err
	}
	f.logger.Warn("a line of the credits that was cut short is dropped", zap.String("file", f.path), zap.Int64("offset", f.size))
	f.torn = false
	return nil
}

// append adds lines. They survive the end of the process, and a power cut if durable is
// true. After an error none of the lines counts.
func (f *file) append(lines []byte, durable bool) error {
	if err := f.cut(); err != nil || len(lines) == 0 {
		return err
	}
	f.torn = true
	if _, err := f.f.WriteAt(lines, f.size); err != nil {
		return err
	}
	if durable {
		if err := f.sync(f.f); err != nil {
			return err
		}
	}
	f.torn = false
	f.size += int64(len(lines))
	return nil
}

// reach is how far the file reaches.
func (f *file) reach() journal.Reach {
	return journal.Reach{Generation: f.state.Generation, Size: f.size, ID: f.state.ID}
}

// compare compares the file with what the journal knows of it.
func (f *file) compare() error {
	if f.journal == nil {
		return nil
	}
	return f.journal.Witness().Compare(FileName, f.reach())
}

// syncRecords has the journal sync the records of the calls that have ended.
func (f *file) syncRecords() error {
	if f.journal == nil {
		return nil
	}
	return f.journal.SyncEntries()
}

// full reports whether it is time to replace the file.
func (f *file) full() bool { return f.f != nil && f.size >= f.limit }

// end is the end of the journal, zero if there is none.
func (f *file) end() (end storage.Position) {
	if f.journal != nil {
		end = f.journal.End()
	}
	return end
}

// replace replaces the file by a file of a later generation, which has only the balances and
// the open reservations. After an error the file is as before. No balance survives a power cut
// that takes its records.
func (f *file) replace(balances []credits.Balance, open []entry, next state) error {
	f.limit = f.size + f.minLimit // when to try again
	text := appendLine(nil, next)
	for _, b := range balances {
		if b.Budget != "" && b.Granted == 0 && b.Spent == 0 { // open has what is held
			continue
		}
		e := entry{Org: b.Org, Grant: b.Granted, Charge: b.Spent}
		if b.Budget != "" {
			e.Accounts = []credits.Account{b.Account}
		}
		text = appendLine(text, e)
	}
	for _, e := range open {
		text = appendLine(text, e)
	}
	if err := f.syncRecords(); err != nil {
		return err
	}
	fresh, err := f.replaceAt(f.path, text)
	if fresh == nil {
		return err
	}
	if f.f != nil {
		_ = f.f.Close() // nothing refers to it any more
	}
	f.f, f.state, f.size, f.torn = fresh, next, int64(len(text)), false
	f.limit = max(f.minLimit, 2*f.size)
	if err := errors.Join(err, f.saveState()); err != nil {
		f.logger.Error("the credits may not survive a power cut", zap.String("file", f.path), zap.Error(err))
	}
	return nil
}

// saveState makes what is written so far survive a power cut, and remembers it.
func (f *file) saveState() error {
	if err := f.sync(f.f); err != nil {
		return err
	}
	f.state.Size, f.synced = f.size, f.size
	saved, err := f.replaceAt(f.statePath(), appendLine(nil, f.state))
	if saved != nil {
		err = errors.Join(err, saved.Close())
	}
	return err
}

// close remembers the file as it is, and closes it.
func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	err := errors.Join(f.cut(), f.syncRecords(), f.saveState(), f.f.Close())
	f.f = nil
	return err
}

// replaceAt writes a file in the place of another: a crash or a power cut leaves the old
// file or the new file, whole. The new file is returned if it is in place, also when it may
// not survive a power cut.
func (f *file) replaceAt(path string, text []byte) (*os.File, error) {
	fresh := path + ".new"
	written, err := journal.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = written.Write(text)
	if err == nil {
		err = f.sync(written)
	}
	if err == nil {
		err = journal.Rename(fresh, path)
	}
	if err != nil {
		return nil, errors.Join(err, written.Close())
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return written, err
	}
	return written, errors.Join(f.sync(dir), dir.Close())
}
