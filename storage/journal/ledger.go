package journal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/storage"
)

// Integrity accounts for the exchanges of a journal, over all processes that had it open:
// every exchange that was seen has a record, or will have one, or is declared
// lost.
type Integrity struct {
	// Seen counts the exchanges that have begun.
	Seen int64 `json:"seen"`
	// Recorded counts the exchanges with a record that the backend has taken, whether or
	// not retention has deleted the record since. Waiting counts the exchanges with a record
	// that is only in the journal. InFlight counts the exchanges without a record yet.
	Recorded int64 `json:"recorded"`
	Waiting  int64 `json:"waiting"`
	InFlight int64 `json:"in_flight"`
	// Losses are what was given up, by reason and time, in the order of time.
	Losses []storage.Loss `json:"losses"`
	// Damage is what starts have found of the files of the store, in the order of time.
	Damage []FileDamage `json:"damage"`
}

// Lost counts the exchanges that have no record and will have none.
func (i *Integrity) Lost() (n int64) {
	for _, l := range i.Losses {
		n += l.Exchanges
	}
	return n
}

// Unaccounted counts the exchanges that the reconciliation lacks: 0, unless
// Weir is wrong.
func (i *Integrity) Unaccounted() int64 {
	return i.Seen - i.Recorded - i.Waiting - i.InFlight - i.Lost()
}

// ledger accounts for the exchanges that have begun, over all processes that had the
// journal open. Each method takes effect as a whole, so that no exchange is ever
// unaccounted for.
type ledger struct {
	mu   sync.Mutex // guards all fields
	page exchangeCounter
	counted
	ended uint64 // how many of counted.begun have a record or are lost

	// recorded counts the exchanges with a record that the backend has, and number is the
	// highest number of such an exchange, both at the journal's position. waiting counts the
	// exchanges with a record in the journal alone.
	recorded int64
	number   uint64
	waiting  int64

	// losses are all incidents except losses of content. drained are the losses before the
	// position.
	losses, drained []storage.Loss
	unsaved         []storage.Loss // losses that no segment has yet, one for each reason
	// entries counts what this process has lost, by the reasons of storage.Loss.
	entries map[string]int64
}

// backlog counts what earlier processes have left and the backend has not taken.
type backlog struct {
	exchanges int64
	number    uint64
	losses    []storage.Loss
	damaged   int64 // entries
}

// restore accounts for what earlier processes brought to the backend or to the journal,
// and for what they could write to the page alone. It returns the number of these exchanges.
func (l *ledger) restore(c *checkpoint, unapplied backlog, page counted) (restored uint64) {
	l.recorded, l.number, l.waiting = c.Recorded, c.Number, unapplied.exchanges
	l.drained = parseLosses(c.Losses)
	for _, loss := range slices.Concat(l.drained, unapplied.losses) {
		l.losses = addIncident(l.losses, loss)
	}
	for i, reason := range unwritten {
		sum := storage.Loss{Reason: reason, From: page.lost[i].From, To: page.lost[i].To}
		for _, loss := range l.losses {
			if loss.Reason == reason {
				sum.Count += loss.Count
				sum.Exchanges += loss.Exchanges
			}
		}
		missing := page.lost[i]
		missing.Count, missing.Exchanges = max(missing.Count-sum.Count, 0), max(missing.Exchanges-sum.Exchanges, 0)
		sum.Count += missing.Count
		sum.Exchanges += missing.Exchanges
		if l.lost[i] = sum; missing.Count > 0 {
			l.add(missing)
		}
	}
	return uint64(l.recorded + l.waiting + (&Integrity{Losses: l.losses}).Lost())
}

// reconcile declares lost what earlier processes saw and brought neither to the
// backend nor to the journal: their end came first.
func (l *ledger) reconcile(c *checkpoint, unapplied backlog, page counted, now moment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	restored := l.restore(c, unapplied, page)
	// A power cut can leave the page behind the journal. Then the numbers of the journal's
	// records tell how many exchanges have begun.
	l.begun = max(page.begun, c.Number, unapplied.number, restored)
	if c.Reach != nil {
		l.begun = max(l.begun, c.Reach.Begun)
	}
	l.ended = l.begun
	missing := int64(l.begun - restored)
	// The drain counts damaged entries, and cannot tell which of the entries were
	// records.
	if corrupt := min(missing, unapplied.damaged); corrupt > 0 {
		l.add(storage.Loss{Reason: storage.LostCorrupt, Exchanges: corrupt, From: now, To: now})
		missing -= corrupt
	}
	if missing > 0 {
		last := cmp.Or(page.last, now)
		l.entries[storage.LostInterrupted] += missing
		l.add(storage.Loss{Reason: storage.LostInterrupted, Count: missing, Exchanges: missing, From: cmp.Or(page.since, last), To: last})
	}
	l.page.keep(&l.counted)
}

// takeRecorded takes the exchanges to be recorded that began and are neither in the journal nor
// lost, when there is no checkpoint that would know.
func (c *checkpoint) takeRecorded(page counted, unapplied backlog) FileDamage {
	known := unapplied.exchanges
	for _, loss := range unapplied.losses {
		known += loss.Exchanges
	}
	c.Recorded = max(int64(page.begun)-known, 0)
	return FileDamage{File: CheckpointName, Found: fmt.Sprintf("is gone or damaged, and so is `%s`: %d exchanges count as recorded, whether or not they were in flight, and what needs a file that is not there now is refused, also if there never was one, until `weir forget <directory> %s` says so", witnessName, c.Recorded, CheckpointName)}
}

// add has a loss written before the next entry that can be.
func (l *ledger) add(loss storage.Loss) {
	l.unsaved = addLoss(l.unsaved, loss)
	l.losses = addIncident(l.losses, loss)
}

// begin counts an exchange, and returns its number.
func (l *ledger) begin(at moment) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun == l.ended {
		l.since = at
	}
	l.last = at
	l.begun++
	l.page.keep(&l.counted)
	return l.begun
}

// seen counts the exchanges that have begun.
func (l *ledger) seen() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun
}

// appended counts exchanges that now have a record in the journal.
func (l *ledger) appended(exchanges int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended += uint64(exchanges)
	l.waiting += exchanges
}

// lose counts what will not be appended. Its exchanges end.
func (l *ledger) lose(loss storage.Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended += uint64(loss.Exchanges)
	l.entries[loss.Reason] += loss.Count
	l.add(loss)
	if i := slices.Index(unwritten[:], loss.Reason); i >= 0 {
		sum := &l.lost[i]
		if loss.From > sum.To+incidentGap {
			sum.From = loss.From
		}
		sum.Count, sum.Exchanges, sum.To = sum.Count+loss.Count, sum.Exchanges+loss.Exchanges, max(sum.To, loss.To)
		l.page.keep(&l.counted)
	}
}

// drop counts what is in the journal and will not reach the backend. Its batch tells the
// ledger of the position.
func (l *ledger) drop(loss storage.Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting -= loss.Exchanges
	l.entries[loss.Reason] += loss.Count
	l.losses = addIncident(l.losses, loss)
}

// contentLost counts entries that have lost their content.
func (l *ledger) contentLost(entries int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[storage.LostContent] += entries
}

// delivered counts what the position has passed.
func (l *ledger) delivered(exchanges int64, number uint64, losses []storage.Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded += exchanges
	l.waiting -= exchanges
	l.number = max(l.number, number)
	for _, loss := range losses {
		l.drained = addIncident(l.drained, loss)
	}
}

// withdrawn counts exchanges with records that the backend proves to lack, or to have if the
// number is negative.
func (l *ledger) withdrawn(exchanges int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded -= exchanges
	l.waiting += exchanges
}

// lossWithdrawn takes a loss from those before the position, or adds it to them if sign is -1.
func (l *ledger) lossWithdrawn(loss storage.Loss, sign int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sign < 0 {
		l.drained = addIncident(l.drained, loss)
	} else {
		l.drained = withdrawIncident(l.drained, loss)
	}
}

// rejected counts what the backend has rejected of a batch whose other exchanges prove to be
// recorded.
func (l *ledger) rejected(loss storage.Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded -= loss.Exchanges
	l.entries[loss.Reason] += loss.Count
	l.losses, l.drained = addIncident(l.losses, loss), addIncident(l.drained, loss)
}

// databaseLost counts records that the backend had, and has lost.
func (l *ledger) databaseLost(n recordCount, now moment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	exchanges := min(n.Exchanges, l.recorded)
	l.recorded -= exchanges
	l.entries[storage.LostDatabase] += n.Records
	l.add(storage.Loss{Reason: storage.LostDatabase, Count: n.Records, Exchanges: exchanges, From: now, To: now})
}

// takeUnsaved returns the losses that no segment has, for a segment.
func (l *ledger) takeUnsaved() []storage.Loss {
	l.mu.Lock()
	defer l.mu.Unlock()
	losses := l.unsaved
	l.unsaved = nil
	return losses
}

// putBack undoes takeUnsaved.
func (l *ledger) putBack(losses []storage.Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, loss := range losses {
		l.unsaved = addLoss(l.unsaved, loss)
	}
}

// hasUnsaved reports whether there are losses that no segment has.
func (l *ledger) hasUnsaved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsaved != nil
}

// save puts what is at the position into a checkpoint.
func (l *ledger) save(c *checkpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Recorded, c.Number, c.Losses = l.recorded, l.number, marshalLosses(l.drained)
}

// integrity is the reconciliation, but for content.
func (l *ledger) integrity() Integrity {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Integrity{
		Seen: int64(l.begun), InFlight: int64(l.begun - l.ended),
		Recorded: l.recorded, Waiting: l.waiting, Losses: slices.Clone(l.losses),
	}
}

// lostEntries counts what this process has lost, by reason.
func (l *ledger) lostEntries() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.entries)
}

// linked reports whether the page, if there is one, is still a file in its directory.
func (l *ledger) linked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.page.file == nil || linked(l.page.file, l.page.file.Name())
}

// reopen keeps the page in the file that now has the name, or in a new one.
func (l *ledger) reopen(dir string) error {
	var fresh exchangeCounter
	if _, err := fresh.open(dir); err != nil {
		fresh.close()
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.page.close()
	l.page = fresh
	l.page.keep(&l.counted)
	return nil
}

func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.page.close()
}

// incidentGap is the time between losses from which on they are incidents of
// their own.
const incidentGap = storage.Timestamp(time.Minute / time.Millisecond)

// maxIncidents bounds what is remembered; then the last one of a reason goes on.
const maxIncidents = 500

// addIncident adds a loss to the last incident of its reason, or begins one.
func addIncident(incidents []storage.Loss, l storage.Loss) []storage.Loss {
	for i := len(incidents) - 1; i >= 0; i-- {
		k := &incidents[i]
		if k.Reason != l.Reason {
			continue
		}
		if len(incidents) < maxIncidents && (l.From > k.To+incidentGap || l.To < k.From-incidentGap) {
			break
		}
		k.Count += l.Count
		k.Exchanges += l.Exchanges
		k.From, k.To = min(k.From, l.From), max(k.To, l.To)
		return incidents
	}
	return append(incidents, l)
}

// withdrawIncident undoes addIncident: it takes a loss from the incidents of its reason at its time, and
// removes those that are now empty.
func withdrawIncident(incidents []storage.Loss, l storage.Loss) []storage.Loss {
	for i := range slices.Backward(incidents) {
		k := &incidents[i]
		if k.Reason != l.Reason || l.From < k.From || l.To > k.To {
			continue
		}
		count, exchanges := min(k.Count, l.Count), min(k.Exchanges, l.Exchanges)
		k.Count, k.Exchanges = k.Count-count, k.Exchanges-exchanges
		l.Count, l.Exchanges = l.Count-count, l.Exchanges-exchanges
	}
	return slices.DeleteFunc(incidents, func(k storage.Loss) bool { return k.Count == 0 && k.Exchanges == 0 })
}

// marshalLosses and parseLosses move losses to a file and back.
func marshalLosses(losses []storage.Loss) (texts [][]byte) {
	for i := range losses {
		texts = append(texts, lossWire.append(nil, &losses[i]))
	}
	return texts
}

func parseLosses(texts [][]byte) (losses []storage.Loss) {
	for _, text := range texts {
		var l storage.Loss
		if lossWire.parse(text, &l) == nil {
			losses = append(losses, l)
		}
	}
	return losses
}

func addLoss(losses []storage.Loss, l storage.Loss) []storage.Loss {
	for i := range losses {
		if k := &losses[i]; k.Reason == l.Reason {
			k.Count += l.Count
			k.Exchanges += l.Exchanges
			k.From, k.To = min(k.From, l.From), max(k.To, l.To)
			return losses
		}
	}
	return append(losses, l)
}

// Integrity is a snapshot of the reconciliation.
func (j *Journal) Integrity() Integrity {
	i := j.ledger.integrity()
	i.Losses = append(i.Losses, j.archive.losses()...)
	i.Damage = j.witness.found()
	slices.SortStableFunc(i.Losses, func(a, b storage.Loss) int { return cmp.Compare(a.From, b.From) })
	return i
}

// Begin counts an exchange as seen and numbers its record. The record's CreatedAt must be
// set. Append or Abandon must follow.
func (j *Journal) Begin(r *storage.Record) { r.Number = j.ledger.begin(r.CreatedAt) }

// Abandon ends an exchange. It declares the exchange lost if no record was appended.
func (j *Journal) Abandon(r *storage.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.versions.abandon(r.Key()) { // nothing followed: the drain must not wait for more
		signal(j.delivery.wake)
	}
	if r.Number == 0 {
		return
	}
	r.Number = 0
	if !j.closed { // else the next start finds it
		j.ledger.lose(storage.Loss{Reason: storage.LostInterrupted, Count: 1, Exchanges: 1, From: r.CreatedAt, To: r.CreatedAt})
	}
}

// saveLosses writes the losses that no segment knows of, and before them the ends of
// segments that have what was lost. It needs the turn.
func (j *Journal) saveLosses() {
	losses := j.ledger.takeUnsaved()
	if losses == nil {
		return
	}
	ends := j.log.unsavedEnds
	j.log.unsavedEnds = nil
	var group []*draft
	for i := range ends {
		d := new(draft)
		encode(d, kindEnd, endWire, &ends[i])
		group = append(group, d)
	}
	for i := range losses {
		d := &draft{at: losses[i].To}
		encode(d, kindLoss, lossWire, &losses[i])
		group = append(group, d)
	}
	j.mu.Lock()
	for _, d := range group {
		j.pendingBytes += d.size()
	}
	j.mu.Unlock()
	j.commit(group)
	if group[0].err != nil {
		j.log.unsavedEnds = append(ends, j.log.unsavedEnds...)
		j.ledger.putBack(losses)
	}
}
