package journal

import (
	"fmt"

	"go.uber.org/zap"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirhq/weir/storage"
)

// A database that is gone, or older than it was, gets its records again: those of raw segments as
// always, and those of sealed segments from what these have beside the content. The drain passes
// all segments in order. What a sealed segment does not have counts as storage.LostDatabase: the
// records without content, and annotations. An erased entry has no record either, so that nobody
// who was erased comes back.

// sealedRecord is what a sealed segment has of a record beside its content.
type sealedRecord struct {
	// Metadata is that of the last version in the segment, encoded by recordWire.
	Metadata []byte
	// recordCount counts the versions in the segment, which the last one stands for.
	recordCount
}

var sealedRecordWire = message[sealedRecord]{
	1: func(r *sealedRecord) any { return &r.Metadata },
	2: func(r *sealedRecord) any { return &r.Records },
	3: func(r *sealedRecord) any { return &r.Exchanges },
}

// rawAlone are fields of a record that only raw segments need: its number, and its charges.
// assetsWire is the field that depends on content.
var (
	rawAlone   = message[record]{72: recordWire[72], 112: recordWire[112]}
	assetsWire = message[record]{66: recordWire[66]}
)

// withoutFields removes fields from metadata, in its memory.
func withoutFields(metadata []byte, fields message[record]) []byte {
	kept := metadata[:0]
	for rest := metadata; len(rest) > 0; {
		number, _, size := protowire.ConsumeField(rest)
		if size < 0 {
			return append(kept, rest...)
		}
		if int(number) >= len(fields) || fields[number] == nil {
			kept = append(kept, rest[:size]...)
		}
		rest = rest[size:]
	}
	return kept
}

// rebuild is the drain's place in a sealed segment whose records the backend gets again.
type rebuild struct {
	number uint64
	reader contentReader
	block  int         // of the segment, which is read next
	count  recordCount // of the records that were read so far
	from   uint32      // the ordinal at which the backend was in the segment
	after  int64       // the records read so far whose content is not before from
}

// readSealed adds to a batch the next records of the sealed segment that the drain has come to. It
// is false if the drain has come to none. Only the last batch of a segment moves the position.
func (dv *delivery) readSealed(d *batch, limits *storage.Limits) bool {
	c := &dv.cursor
	if c.sealed == nil && !dv.openSealed() {
		return false
	}
	r := c.sealed
	for r.reader.index != nil && r.block < len(r.reader.index.blocks) && len(d.Records) < limits.Entries {
		r.read(dv.j, d)
	}
	d.entries, d.full = len(d.Records), true
	d.ID = fmt.Sprintf("sealed-%d.%d", r.number, r.block)
	if r.reader.index == nil || r.block == len(r.reader.index.blocks) {
		dv.endSealed(d, r)
	}
	return true
}

// openSealed opens the sealed segment that the drain has come to, if there is one.
func (dv *delivery) openSealed() bool {
	c := &dv.cursor
	number, found := dv.nextSealed()
	if !found {
		return false
	}
	c.sealed = &rebuild{number: number, reader: contentReader{j: dv.j}}
	if c.at.Segment == number {
		c.sealed.from = c.at.Ordinal
	}
	if err := c.sealed.reader.open(number); err != nil { // a segment without content has no file
		c.sealed.reader.index = nil
	}
	return true
}

// nextSealed returns the number of the sealed segment that comes next at the drain's place.
func (dv *delivery) nextSealed() (number uint64, found bool) {
	c, before := &dv.cursor, dv.rebuild.Segment+1
	if c.at.Segment >= before || c.segment != nil {
		return 0, false
	}
	pruned := dv.j.checkpoints.pruned()
	dv.j.mu.Lock()
	defer dv.j.mu.Unlock()
	if i, _ := dv.j.log.find(c.at.Segment); i < len(dv.j.log.unsealed) {
		before = min(before, dv.j.log.unsealed[i].number)
	}
	return dv.j.archive.next(c.at.Segment, before, pruned)
}

// rebuilds reports whether the backend gets sealed segments again. It needs the mutex.
func (dv *delivery) rebuilds(pruned moment) bool {
	is, was := dv.position.Segment, dv.rebuild.Segment
	if is > was {
		return false
	}
	_, found := dv.j.archive.next(is, was+1, pruned)
	return found
}

// rebuilding reports whether the backend has lost records that it gets again: until then nobody can
// tell which records there are, or which of them a hold keeps.
func (dv *delivery) rebuilding() bool {
	pruned := dv.j.checkpoints.pruned()
	dv.j.mu.Lock()
	defer dv.j.mu.Unlock()
	return dv.rebuilds(pruned)
}

// read adds the records of a block to a batch.
func (r *rebuild) read(j *Journal, d *batch) {
	block := r.block
	r.block++
	r.reader.reads++
	f, err := r.reader.frame(block, recordFrame)
	if err != nil {
		j.options.logger().Error("records cannot be given to the database again", zap.String("file", segmentPath(j.dir, r.number, sealedSuffix)), zap.Error(err))
		return
	}
	for _, item := range f.stands {
		of := new(storage.Record)
		n, err := parseSealed(f.data[item.start:item.end], of)
		if err != nil {
			continue
		}
		at := storage.Position{Segment: r.number, Ordinal: item.ordinal}
		of.Version, of.Content = at, storage.ContentRef(at)
		d.Records = append(d.Records, of)
		d.began[of.Key()] = n.Exchanges > 0
		r.count.add(n)
		if item.ordinal >= r.from {
			r.after++
		}
	}
}

func parseSealed(item []byte, to *storage.Record) (recordCount, error) {
	var r sealedRecord
	err := sealedRecordWire.parse(item, &r)
	if err == nil {
		err = recordWire.parse(r.Metadata, to)
	}
	return r.recordCount, err
}

// endSealed moves the position after a segment, and counts what the segment does not have.
func (dv *delivery) endSealed(d *batch, r *rebuild) {
	r.reader.Close()
	c := &dv.cursor
	missing, unrecovered := dv.j.archive.unrecovered(c.at, r, dv.j.checkpoints.pruned())
	now := dv.j.options.now()
	lost := storage.Loss{Reason: storage.LostDatabase, From: now, To: now, Count: unrecovered.Records, Exchanges: unrecovered.Exchanges}
	d.exchanges += missing.Exchanges - lost.Exchanges
	d.rebuilt, d.End = r, storage.Position{Segment: r.number + 1}
	dv.j.mu.Lock()
	if lost.Count > 0 {
		d.losses = addLoss(d.losses, lost)
		dv.j.ledger.drop(lost)
	}
	c.at, c.sealed = d.End, nil
	dv.j.mu.Unlock()
}

// saveRebuilt saves in the list of sealed segments which of them the backend got again, and reports
// whether the list has been written. Only then may the checkpoint drop them: a crash between the two
// files must not count twice what a segment lacks.
func (dv *delivery) saveRebuilt() bool {
	if len(dv.rebuilt) == 0 {
		return false
	}
	dv.j.archive.noteRebuilt(dv.rebuilt)
	if dv.j.archive.save() != nil {
		return false
	}
	dv.j.mu.Lock()
	defer dv.j.mu.Unlock()
	dv.rebuilt = nil
	return true
}

// moveRebuild changes which sealed segments the backend gets again, because its position is to and not
// from. Their exchanges change from recorded to waiting, or from waiting to recorded. It needs
// the mutex.
func (dv *delivery) moveRebuild(from, to storage.Position, pruned moment) {
	was := dv.rebuild
	before := dv.j.archive.missing(from, was, pruned)
	if to.Before(from) && was.Before(from) {
		was = from
	}
	dv.j.ledger.withdrawn(dv.j.archive.missing(to, was, pruned).Exchanges - before.Exchanges)
	dv.rebuild = was
}

// countDatabaseLoss counts the records that the database had when the position was from, and that
// no segment can give to a database whose position is another. What a sealed segment lacks counts
// when the drain passes it. Erasures are repeated, whatever is lost: the database has what they took since.
func (dv *delivery) countDatabaseLoss(from, is storage.Position) {
	if !is.Before(from) {
		return
	}
	if err := dv.j.erasures.findAgain(); err != nil {
		dv.j.options.logger().Error("the database may have records that were erased", zap.Error(err))
	}
	missing, lost := dv.j.archive.missing(is, from, dv.j.checkpoints.pruned()), dv.expired(is)
	if missing.Records+lost.Records == 0 {
		return
	}
	what := "is older than it was"
	if is == (storage.Position{}) {
		what = "is gone, empty or another one"
	}
	if lost.Records > 0 {
		dv.j.ledger.databaseLost(lost, dv.j.options.now())
	}
	dv.j.witness.tell(FileDamage{File: databaseName(dv.j.dir), Found: fmt.Sprintf(
		"%s: of the %d versions of records and annotations in sealed segments, it gets the records again that have their bodies there; the others, and %d of segments that are deleted, are lost", what, missing.Records, lost.Records)})
	dv.j.log.turn.Lock()
	dv.j.saveLosses()
	dv.j.log.turn.Unlock()
	dv.j.saveCheckpoint(storage.Position{})
}

// expired counts what was in segments that are deleted, and that a backend at a position lacks: only
// if it has nothing, and retention has not deleted records, is that known.
func (dv *delivery) expired(is storage.Position) (n recordCount) {
	if is == (storage.Position{}) && dv.j.checkpoints.pruned() == 0 {
		dv.j.archive.mu.Lock()
		n = dv.j.archive.earlier
		dv.j.archive.mu.Unlock()
	}
	return n
}
