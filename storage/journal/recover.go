package journal

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// recover opens the raw segments and removes what a crash left behind. While
// the raw file of a segment exists, the raw file counts: it is deleted only after the
// sealed file is complete. recover returns the highest number in use.
func (j *Journal) recover() (last uint64, err error) {
	unsealed, sealed, temporary, err := segmentFiles(j.dir)
	if err != nil {
		return 0, err
	}
	_, was, _ := readCheckpoints(j.dir) // without one, the headers hold
	salts := was.Reach.salts()
	if err := j.log.undoExchanges(j.log.exchanged(unsealed, salts)); err != nil {
		return 0, err
	}
	for _, name := range temporary {
		if err := os.Remove(filepath.Join(j.dir, name)); err != nil {
			return 0, err
		}
	}
	for _, numbers := range []map[uint64]bool{unsealed, sealed} {
		for n := range numbers {
			last = max(last, n)
		}
	}
	if err := j.archive.open(); err != nil {
		j.options.logger().Error("content that was deleted cannot be told", zap.Error(err))
	}
	for n := range unsealed {
		if !sealed[n] {
			j.archive.remove(n)
			continue
		}
		suffix, numbers := sealedSuffix, sealed // which of the two files is deleted
		if j.archive.has(n) {
			suffix, numbers = rawSuffix, unsealed
		}
		if err := os.Remove(segmentPath(j.dir, n, suffix)); err != nil {
			return 0, err
		}
		delete(numbers, n)
	}
	j.loadSealed(sealed)
	return last, j.log.loadRaw(unsealed, salts, nil)
}

// segmentFiles lists the numbers of the raw and sealed segments of a directory, and the names of
// files that nothing needs: temporary files, which are incomplete, and grams without a segment.
func segmentFiles(dir string) (unsealed, sealed map[uint64]bool, temporary []string, err error) {
	names, err := os.ReadDir(dir)
	unsealed, sealed = map[uint64]bool{}, map[uint64]bool{}
	grams := map[uint64]string{}
	for _, entry := range names {
		name := entry.Name()
		suffix := filepath.Ext(name)
		if suffix == temporarySuffix {
			temporary = append(temporary, name)
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(name, suffix), 10, 64)
		switch {
		case err != nil:
		case suffix == rawSuffix:
			unsealed[n] = true
		case suffix == sealedSuffix:
			sealed[n] = true
		case suffix == gramsSuffix:
			grams[n] = name
		}
	}
	for n, name := range grams {
		if !sealed[n] {
			temporary = append(temporary, name)
		}
	}
	return unsealed, sealed, temporary, err
}

// salts returns the salts of the raw segments, as far as the witness says.
func (r *reach) salts() map[uint64]uint32 {
	salts := make(map[uint64]uint32)
	if r != nil {
		for _, s := range r.Raw {
			salts[s.Segment] = s.Salt
		}
	}
	return salts
}

// loadRaw opens the raw segments. exchanged has the numbers in whose names the files of some are.
func (l *log) loadRaw(numbers map[uint64]bool, salts map[uint64]uint32, exchanged map[uint64]uint64) error {
	var ends []storage.Position
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		at, ok := exchanged[n]
		if !ok {
			at = n
		}
		if err := l.load(n, segmentPath(l.dir, at, rawSuffix), salts[n], &ends); err != nil {
			return err
		}
	}
	for _, end := range ends {
		if i, found := l.find(end.Segment); found {
			if err := l.unsealed[i].cut(end.Ordinal, l.options.now()); err != nil {
				return err
			}
		}
	}
	return nil
}

// exchanged returns the segments whose files somebody has renamed, with the numbers in whose names they are,
// by the salts that the witness says.
func (l *log) exchanged(numbers map[uint64]bool, salts map[uint64]uint32) map[uint64]uint64 {
	places := make(map[uint32]uint64) // the numbers of files whose salt is not that of their name
	for n := range numbers {
		f, err := l.options.Load().open(segmentPath(l.dir, n, rawSuffix), os.O_RDONLY)
		if err != nil {
			continue // load says why
		}
		if salt, err := readHeader(f); err == nil && salts[n] != 0 && salt != salts[n] {
			places[salt] = n
		}
		f.Close()
	}
	exchanged := make(map[uint64]uint64)
	for n := range numbers {
		if at, ok := places[salts[n]]; ok {
			exchanged[n] = at
		}
	}
	// Names go round in a circle. The other files have no name to go back to.
	for n, at := range exchanged {
		for steps := len(exchanged); at != n; at, steps = exchanged[at], steps-1 {
			if _, ok := exchanged[at]; !ok || steps == 0 {
				delete(exchanged, n)
				break
			}
		}
	}
	return exchanged
}

// undoExchanges gives segments their own files back. A kill leaves each file under one of the names.
func (l *log) undoExchanges(exchanged map[uint64]uint64) error {
	if len(exchanged) == 0 {
		return nil
	}
	for n := range exchanged {
		for at := exchanged[n]; at != n; at = exchanged[n] {
			own, other := segmentPath(l.dir, n, rawSuffix), segmentPath(l.dir, at, rawSuffix)
			if err := exchangeFiles(own, other); err != nil {
				return fmt.Errorf("%s has the name of %s: give both their own names back: %w", other, own, err)
			}
			for displaced, place := range exchanged { // the file that had the name until now
				if place == n {
					exchanged[displaced] = at
				}
			}
			exchanged[n] = n
		}
	}
	return SyncDir(l.dir)
}

func (j *Journal) loadSealed(numbers map[uint64]bool) {
	for n := range numbers {
		if s, there := j.archive.segment(n); there && s.Size > 0 {
			continue
		}
		if err := j.archive.adopt(n); err != nil {
			j.options.logger().Error("content cannot be read", zap.Error(err))
		}
	}
	j.archive.settle()
	j.archive.noteRead()
}

// replay counts the entries of earlier processes that the backend has not taken.
func (j *Journal) replay() (unapplied backlog, err error) {
	j.delivery.cursor.at = j.delivery.position
	unapplied.exchanges = j.archive.missing(j.delivery.position, j.delivery.rebuild, j.checkpoints.pruned()).Exchanges
	j.pendingBytes, unapplied.damaged, err = entries(j.log.readings(j.delivery.position), j.delivery.position, storage.Position{Segment: math.MaxUint64}, func(s *segment, at storage.Position, e *entry) {
		var r record
		var l loss
		switch {
		case e.kind == kindRecord && identityWire.parse(e.metadata, &r) == nil:
			j.versions.pending[r.Key()] = at
			j.versions.addSpans(r.Key(), r.SpanKeys)
			if r.Number > 0 {
				s.exchanges++
				unapplied.exchanges++
				unapplied.number = max(unapplied.number, r.Number)
			}
		case e.kind == kindLoss && lossWire.parse(e.metadata, &l) == nil:
			unapplied.losses = append(unapplied.losses, l)
		}
	})
	return unapplied, err
}

// identityWire reads only the organisation, the ID, the EndState, the number and the span keys
// of a record.
var identityWire = message[record]{1: recordWire[1], 2: recordWire[2], 9: recordWire[9], 72: recordWire[72], 95: recordWire[95]}

// End is after all entries that were appended.
func (j *Journal) End() storage.Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.log.unsealed); n > 0 {
		s := j.log.unsealed[n-1]
		return storage.Position{Segment: s.number, Ordinal: s.entries}
	}
	return storage.Position{Segment: j.log.next.Load()}
}

// Charges calls each with the EndState and the Charges of each version of a record at or after a
// position, the oldest first. Those of sealed segments are not read: a segment is sealed after the
// ledger was synced, and with Options.AwaitLedger after LedgerRead.
func (j *Journal) Charges(from storage.Position, each func(end storage.EndState, charges map[string]string)) error {
	j.mu.Lock()
	all := j.log.readings(from)
	for _, r := range all {
		r.refs++
	}
	j.mu.Unlock()
	defer func() {
		for _, r := range all {
			j.log.release(r.segment)
		}
	}()
	_, _, err := entries(all, from, storage.Position{Segment: math.MaxUint64}, func(_ *segment, _ storage.Position, e *entry) {
		var r record
		if e.kind == kindRecord && chargesWire.parse(e.metadata, &r) == nil && len(r.Charges) > 0 {
			each(r.EndState, r.Charges)
		}
	})
	return err
}

// LedgerRead ends the wait of Options.AwaitLedger.
func (j *Journal) LedgerRead() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.awaitsLedger = false
	signal(j.maintenance.wake)
}

// chargesWire reads only the EndState and the Charges of a record.
var chargesWire = func() message[record] {
	wire := make(message[record], len(recordWire))
	wire[9], wire[112] = recordWire[9], recordWire[112]
	return wire
}()

// relocate moves the position to the backend's own. After a power cut of the backend or from its
// restored backup, the backend has less than the journal noted; if the journal could not write its
// checkpoint, it has more. Exchanges between the two positions change from recorded to waiting, or
// from waiting to recorded; losses change from those before the position to those after it, or back.
func (dv *delivery) relocate(to storage.Position) error {
	pruned := dv.j.checkpoints.pruned()
	dv.j.mu.Lock()
	defer dv.j.mu.Unlock()
	from := dv.position
	if from.Before(to) && to == dv.batchEnd && dv.rebuilds(pruned) {
		to = from // only who gives a sealed segment again knows what it does not have
	}
	dv.cursor.at = to
	if to == from {
		return nil
	}
	if to == dv.batchEnd {
		for _, l := range dv.rejected { // by the process that wrote the batch
			dv.j.ledger.rejected(l)
		}
		dv.rejected = nil
	}
	dv.position, dv.batchEnd = to, storage.Position{}
	dv.moveRebuild(from, to, pruned)
	dv.j.log.reserveNumber(to.Segment + 1)
	low, high, sign := to, from, int64(1) // the backend has less
	if from.Before(to) {
		low, high, sign = from, to, -1
	}
	bytes, damaged, err := entries(dv.j.log.readings(low), low, high, func(s *segment, at storage.Position, e *entry) {
		var r record
		var l storage.Loss
		if e.kind == kindLoss && lossWire.parse(e.metadata, &l) == nil {
			dv.j.ledger.lossWithdrawn(l, sign)
		}
		if e.kind != kindRecord || identityWire.parse(e.metadata, &r) != nil {
			return
		}
		if r.Number > 0 {
			s.exchanges += sign
			dv.j.ledger.withdrawn(sign)
		}
		last, waits := dv.j.versions.pending[r.Key()]
		switch {
		case sign < 0:
			if waits && last.Before(high) {
				delete(dv.j.versions.pending, r.Key())
				dv.j.versions.forgetSpans(r.Key())
			}
			dv.j.versions.passHeld(s, at, e, &r)
		case !waits || last.Before(at):
			dv.j.versions.pending[r.Key()] = at
			dv.j.versions.addSpans(r.Key(), r.SpanKeys)
		}
	})
	if sign < 0 && damaged > 0 { // nobody else reads these
		now := dv.j.options.now()
		dv.j.ledger.lose(storage.Loss{Reason: storage.LostCorrupt, Count: damaged, From: now, To: now})
	}
	dv.j.pendingBytes += sign * bytes
	dv.j.versions.recount()
	return err
}

// reading is a raw segment, up to where its end was.
type reading struct {
	*segment
	scan *scanner
}

// readings are the raw segments from a position on. It needs the mutex.
func (l *log) readings(from storage.Position) (all []reading) {
	i, _ := l.find(from.Segment)
	for _, s := range l.unsealed[i:] {
		first := uint32(0)
		if s.number == from.Segment {
			first = from.Ordinal
		}
		all = append(all, reading{s, s.scanner(first, scanWindow)})
	}
	return all
}

// entries calls each with the entries of raw segments between two positions. It returns their size
// in bytes, and how many of them are damaged.
func entries(all []reading, from, to storage.Position, each func(*segment, storage.Position, *entry)) (size, damaged int64, err error) {
	for _, r := range all {
		s, sc := r.segment, r.scan
		if s.number > to.Segment {
			break
		}
		if s.number == from.Segment && from.Ordinal > 0 {
			_, _ = sc.seek(from.Ordinal)
		}
		for start := sc.off; ; start = sc.off {
			e, err := sc.next()
			at := storage.Position{Segment: s.number, Ordinal: e.ordinal}
			if err != nil && !errors.Is(err, io.EOF) {
				return size, damaged, fmt.Errorf("reading %s: %w", s.path, err)
			}
			if err == nil && !at.Before(to) {
				break
			}
			size += sc.off - start
			if err != nil {
				break
			}
			each(s, at, &e)
		}
		damaged += sc.lost
	}
	return size, damaged, nil
}

// restoreHeld reads the entries that an earlier process held back, in the order of the journal.
func (j *Journal) restoreHeld(held []storage.Position) {
	slices.SortFunc(held, storage.Position.Compare)
	for _, at := range held {
		i, found := j.log.find(at.Segment)
		if !found {
			continue
		}
		s := j.log.unsealed[i]
		e, err := s.scanner(at.Ordinal, headWindow).seek(at.Ordinal)
		if err != nil || e.ordinal != at.Ordinal {
			j.options.logger().Error("an entry of the journal that was held back cannot be read", zap.String("file", s.path), zap.Uint32("ordinal", at.Ordinal), zap.Error(err))
			continue
		}
		j.versions.recovered[at] = true
		j.versions.restore(s, &e)
	}
	j.versions.recount()
}
