package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Report is what Check has found.
type Report struct {
	// Raw and Sealed count the segments, Contents the entries with content that can be read.
	Raw, Sealed int
	Contents    int64
	// Integrity is the reconciliation. InFlight are the exchanges that were in flight when
	// the last process ended: the next one declares them lost.
	Integrity Integrity
	// Others are the files of other packages that the checkpoint knows, by name.
	Others map[string]Reach
	// Problems are what is wrong, a sentence each. What the journal has counted as lost
	// is no problem.
	Problems []string
}

// Is reports whether a directory is the directory of a journal.
func Is(dir string) bool {
	return slices.ContainsFunc(checkpointNames[:], func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// Check reads all of the directory of a journal that no process uses, and changes
// nothing. backend hands every record that the backend has to match, and returns how
// far the backend is with this journal. backend is nil if the backend is out of reach. An
// error of backend is a problem.
func Check(ctx context.Context, dir string, backend func(journal uuid.UUID, match func(*storage.Record)) (storage.Position, error)) (*Report, error) {
	c := &checker{
		Journal:  newJournal(nil, Options{Dir: dir, open: openReadOnly}),
		contents: map[uint64]ordinals{}, records: map[storage.RecordKey]appended{},
	}
	unlock, err := lockShared(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer func() {
		for _, s := range c.log.unsealed {
			s.file.Close()
		}
	}()
	if err := c.check(ctx, backend); err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	return &c.report, nil
}

// checker is a journal that is read, without drain and maintenance.
type checker struct {
	*Journal
	report   Report
	contents map[uint64]ordinals            // with content, by segment
	records  map[storage.RecordKey]appended // of raw segments, which the backend was not seen to have
	segments []age                          // of segments, by number
	dangling int64                          // records in the backend whose content is not where it should be
	pruned   moment                         // the backend's records from before it are deleted
}

// appended is the last version of a record in the raw segments.
type appended struct {
	at      storage.Position
	created moment
}

// age is how old the content is that retention has kept: newest is the least newest of all
// segments up to a number.
type age struct {
	number uint64
	newest moment
}

func openReadOnly(path string, _ int) (file, error) { return openFile(path, os.O_RDONLY) }

func (c *checker) problem(format string, args ...any) {
	c.report.Problems = append(c.report.Problems, fmt.Sprintf(format, args...))
}

func (c *checker) check(ctx context.Context, backend func(uuid.UUID, func(*storage.Record)) (storage.Position, error)) error {
	unsealed, sealed, _, err := segmentFiles(c.dir)
	if err != nil {
		return err
	}
	if err := c.archive.open(); err != nil {
		c.problem("%v", err)
	}
	for n := range unsealed { // a crash leaves both
		if c.archive.has(n) {
			delete(unsealed, n)
		} else {
			delete(sealed, n)
		}
	}
	c.report.Raw, c.report.Sealed = len(unsealed), len(sealed)
	for n := range sealed {
		if s, there := c.archive.segment(n); !there || s.Size == 0 {
			_ = c.archive.adopt(n) // checkBlocks says why it cannot be read
		}
	}
	c.archive.settle()
	c.archive.noteRead()
	_, was, err := readCheckpoints(c.dir)
	if err == nil {
		salts := was.Reach.salts()
		err = c.log.loadRaw(unsealed, salts, c.log.exchanged(unsealed, salts))
	}
	if err != nil {
		return err
	}
	for _, s := range c.log.unsealed {
		if err := c.checkRaw(ctx, s); err != nil {
			return err
		}
	}
	if err := c.checkBlocks(ctx, sealed); err != nil {
		return err
	}
	c.sortAges()
	begun, err := c.restoreLedger()
	if err != nil {
		return err
	}
	if backend != nil {
		position, err := backend(c.identity, c.match)
		if err == nil {
			err = c.compare(position)
		}
		if err != nil {
			c.problem("%v", err)
		}
	}
	c.reconcile(begun)
	return nil
}

// checkRaw reads every entry of a raw segment.
func (c *checker) checkRaw(ctx context.Context, s *segment) error {
	damaged := 0
	sc := s.scanner(0, scanWindow)
	for {
		e, err := sc.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		var r record
		if e.kind == kindRecord && identityWire.parse(e.metadata, &r) == nil && createdWire.parse(e.metadata, &r) == nil {
			c.records[r.Key()] = appended{storage.Position{Segment: s.number, Ordinal: e.ordinal}, r.CreatedAt}
		}
		if e.length == 0 {
			continue
		}
		if _, err := s.content(&e); err != nil {
			damaged++
			continue
		}
		c.contents[s.number] = c.contents[s.number].with(e.ordinal)
		c.report.Contents++
	}
	if sc.lost > 0 {
		c.problem("%s: %d entries are damaged", s.path, sc.lost)
	}
	if damaged > 0 {
		c.problem("%s: the bodies of %d records are damaged", s.path, damaged)
	}
	return nil
}

// checkBlocks reads the blocks of all sealed segments, without what counts as lost.
func (c *checker) checkBlocks(ctx context.Context, found map[uint64]bool) error {
	listed := c.archive.all()
	for _, n := range slices.Sorted(maps.Keys(listed)) {
		if s := listed[n]; !found[n] && s.Lost < s.Entries {
			c.problem("%s is gone, with the bodies of %d records", segmentPath(c.dir, n, sealedSuffix), s.Entries-s.Lost)
		}
	}
	r := &contentReader{j: c.Journal, parts: storage.WholeContent}
	defer r.Close()
	for _, n := range slices.Sorted(maps.Keys(found)) {
		s := listed[n]
		if s.Lost > 0 && s.Lost == s.Entries {
			continue
		}
		if err := r.open(n); err != nil {
			c.problem("%s: %v", segmentPath(c.dir, n, sealedSuffix), err)
			continue
		}
		c.contents[n] = nil
		if err := c.checkEntries(ctx, r, n, s.Damaged); err != nil {
			return err
		}
	}
	return nil
}

// checkEntries reads the content of a sealed segment. r has the segment open.
func (c *checker) checkEntries(ctx context.Context, r *contentReader, segment uint64, damaged []uint32) error {
	lost := map[int]int{} // entries by block
	var cause error
	for block := range r.index.blocks {
		r.reads++
		if _, err := r.frame(block, recordFrame); err != nil {
			c.problem("%s: the records of block %d, which a database that is lost gets again: %v", segmentPath(c.dir, segment, sealedSuffix), block, err)
		}
	}
	for ordinal := range uint32(len(r.index.of) / 4) {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.content = storage.Content{}
		found, err := r.readSealed(ordinal)
		switch {
		case err != nil && !slices.Contains(damaged, r.index.blocks[r.broken.block].first):
			lost[r.broken.block]++
			cause = err
		case found && err == nil:
			c.contents[segment] = c.contents[segment].with(ordinal)
			c.report.Contents++
		}
	}
	for _, b := range slices.Sorted(maps.Keys(lost)) {
		c.problem("%s: the bodies of %d records, from entry %d on, or with bytes in its block: %v", segmentPath(c.dir, segment, sealedSuffix), lost[b], r.index.blocks[b].first, cause)
	}
	return nil
}

// restoreLedger reads the checkpoint and the count of the exchanges, and returns how
// many have begun.
func (c *checker) restoreLedger() (begun uint64, err error) {
	damage, s, err := readCheckpoints(c.dir)
	if err != nil {
		return 0, err
	}
	c.checkpoints.last = s
	c.delivery.takeCheckpoint(&s)
	c.pruned = s.Pruned
	unapplied, err := c.replay()
	if err != nil {
		return 0, err
	}
	c.restoreHeld(s.Held)
	text, err := os.ReadFile(filepath.Join(c.dir, counterName))
	if err != nil {
		c.problem("the exchanges that have begun are not counted: %v", err)
	}
	page, _ := readCounter(text)
	c.ledger.restore(&s, unapplied, page)
	begun = max(page.begun, s.Number, unapplied.number)
	if s.Reach != nil {
		begun = max(begun, s.Reach.Begun)
		c.report.Others, c.report.Integrity.Damage = s.Reach.Others, s.Reach.Damage
	}
	erasures, _ := readErasures(c.dir) // a list that cannot be read reaches nowhere
	c.erasures.records.Store(erasures.records)
	if err := CompareReach(c.dir, ErasuresName, erasures.reach(), c.report.Others[ErasuresName]); err != nil {
		c.problem("%v", err)
	}
	found, _, _ := c.Journal.compare(&s, page, !strings.HasSuffix(c.dir, directorySuffix))
	for _, d := range append(damage, found...) {
		c.problem("%s %s", filepath.Join(c.dir, d.File), d.Found)
	}
	return begun, nil
}

// match gets every record that the backend has.
func (c *checker) match(r *storage.Record) {
	delete(c.records, r.Key())
	has, there := c.contents[r.Content.Segment]
	if there && !has.has(r.Content.Ordinal) || !there && c.outlived(r) {
		c.dangling++
	}
}

// recoverable counts the versions of records that the sealed segments can give to a backend at a
// position.
func (c *checker) recoverable(backend storage.Position) int64 {
	var d batch
	d.began = make(map[storage.RecordKey]bool)
	r := rebuild{reader: contentReader{j: c.Journal}}
	defer r.reader.Close()
	for number := range c.archive.all() {
		r.number, r.block = number, 0
		if number < backend.Segment || r.reader.open(number) != nil {
			continue
		}
		for r.block < len(r.reader.index.blocks) {
			d.Records = d.Records[:0]
			r.read(c.Journal, &d)
		}
	}
	return r.count.Records
}

// sortAges needs all segments.
func (c *checker) sortAges() {
	for _, s := range c.log.unsealed {
		if s.newest > 0 { // else it has no record
			c.segments = append(c.segments, age{s.number, s.newest})
		}
	}
	for n, s := range c.archive.all() {
		c.segments = append(c.segments, age{n, moment(s.Newest)})
	}
	slices.SortFunc(c.segments, func(a, b age) int { return cmp.Compare(a.number, b.number) })
	for i := 1; i < len(c.segments); i++ {
		c.segments[i].newest = min(c.segments[i].newest, c.segments[i-1].newest)
	}
}

// outlived reports whether the missing segment with a record's content was not deleted by
// retention: an older segment is there, which retention would have deleted first.
func (c *checker) outlived(r *storage.Record) bool {
	before, _ := slices.BinarySearchFunc(c.segments, r.Content.Segment, func(a age, n uint64) int { return cmp.Compare(a.number, n) })
	return r.Content != (storage.ContentRef{}) && before > 0 && c.segments[before-1].newest < r.CreatedAt
}

// compare checks that the backend, which has all entries before a position, fits the
// segments.
func (c *checker) compare(backend storage.Position) error {
	if backend.Before(c.delivery.position) {
		missing, lost := c.archive.missing(backend, c.delivery.position, c.pruned), c.delivery.expired(backend)
		if lost.add(missing); lost.Records > 0 {
			c.problem("%s is older than the segments beside it: it lacks %d versions of records and annotations, and the next start writes %d of them again", databaseName(c.dir), lost.Records, min(c.recoverable(backend), missing.Records))
		}
	}
	var rejected, content, missing int64
	for _, l := range slices.Concat(c.ledger.losses, c.archive.losses()) {
		switch l.Reason {
		case storage.LostRejected:
			rejected += l.Count
		case storage.LostContent:
			content += l.Count
		}
	}
	for key, r := range c.records {
		if c.Erased(key) != storage.EraseRecord && r.at.Before(backend) && r.created >= c.pruned && !c.versions.recovered[r.at] { // else retention has deleted it
			missing++
		}
	}
	if missing > rejected {
		c.problem("%d records of the journal are missing in the database, which has rejected %d", missing, rejected)
	}
	if c.dangling > content+c.archive.erased() {
		c.problem("the bodies of %d records are not where the database has them, and the journal has counted %d as lost", c.dangling, content)
	}
	return c.delivery.relocate(backend)
}

func (c *checker) reconcile(begun uint64) {
	i := &c.report.Integrity
	i.Seen, i.Recorded, i.Waiting = int64(begun), c.ledger.recorded, c.ledger.waiting
	i.Losses = slices.Concat(c.ledger.losses, c.archive.losses())
	if i.InFlight = i.Unaccounted(); i.InFlight < 0 {
		c.problem("%d exchanges are accounted for, and %d have begun", i.Seen-i.InFlight, i.Seen)
	}
}

// ordinals are a set of numbers, a bit each.
type ordinals []uint64

func (o ordinals) has(n uint32) bool { return int(n/64) < len(o) && o[n/64]&(1<<(n%64)) != 0 }

func (o ordinals) with(n uint32) ordinals {
	if missing := int(n/64) + 1 - len(o); missing > 0 {
		o = append(o, make([]uint64, missing)...)
	}
	o[n/64] |= 1 << (n % 64)
	return o
}
