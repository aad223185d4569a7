package journal

import (
	"cmp"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// Integrity accounts for the exchanges of a journal, over all processes that had it open:
// every exchange that was seen has a record, or will have one, or is declared
// lost.
type Integrity struct {
	// Seen counts the exchanges that have begun.
	Seen int64 `json:"seen"`
	// Recorded counts those whose record the backend has taken, whether or not
	// retention has deleted it since; Waiting those whose record stands in the
	// journal; InFlight those that have not come to their record yet.
	Recorded int64 `json:"recorded"`
	Waiting  int64 `json:"waiting"`
	InFlight int64 `json:"in_flight"`
	// Losses are what was given up, by reason and time, in the order of time.
	Losses []storage.Loss `json:"losses"`
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

// ledger accounts for the exchanges that have begun. The journal's mutex guards
// it.
type ledger struct {
	// recorded and number are those at the journal's position.
	recorded int64
	number   uint64
	waiting  int64
	// losses are all, drained those that stand before the position.
	losses, drained []storage.Loss
}

// Integrity is a snapshot of the reconciliation.
func (j *Journal) Integrity() Integrity {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := Integrity{Recorded: j.ledger.recorded, Waiting: j.ledger.waiting, Losses: slices.Concat(j.ledger.losses, j.sealed.losses())}
	slices.SortStableFunc(i.Losses, func(a, b storage.Loss) int { return cmp.Compare(a.From, b.From) })
	i.Seen, i.InFlight = j.counter.counts()
	return i
}

// reconcile declares lost what earlier processes saw and brought neither to the
// backend nor to the journal: their end came first.
func (j *Journal) reconcile(l *checkpoint, left backlog) {
	c, err := j.counter.open(j.dir)
	if err != nil {
		j.options.Logger.Error("exchanges are counted in memory alone: those that a crash interrupts will not be known", zap.Error(err))
	}
	j.startLedger(l, left)
	known := uint64(j.ledger.recorded + j.ledger.waiting + (&Integrity{Losses: j.ledger.losses}).Lost())
	// A power cut can leave the file behind the journal, whose records then
	// tell of what began before them.
	begun := max(c.begun, l.Number, left.number, known)
	j.counter.start(begun)

	missing := int64(begun - known)
	if missing <= 0 {
		return
	}
	now := storage.Millis(j.options.now())
	if c.last == 0 {
		c.last = now
	}
	if c.since == 0 {
		c.since = c.last
	}
	j.mu.Lock()
	// The drain counts the entries that are damaged, and cannot tell which of
	// them would have been records.
	if corrupt := min(missing, left.damaged); corrupt > 0 {
		j.countLost(storage.Loss{Reason: storage.LostCorrupt, Exchanges: corrupt, From: now, To: now})
		missing -= corrupt
	}
	if missing > 0 {
		j.countLost(storage.Loss{Reason: storage.LostInterrupted, Count: missing, Exchanges: missing, From: c.since, To: c.last})
	}
	j.mu.Unlock()
	j.turn.Lock()
	defer j.turn.Unlock()
	j.saveLosses()
}

// startLedger accounts for what earlier processes brought to the backend or to the
// journal.
func (j *Journal) startLedger(l *checkpoint, left backlog) {
	j.ledger = ledger{recorded: l.Recorded, number: l.Number, waiting: left.exchanges}
	j.ledger.drained = parseLosses(l.Losses)
	for _, loss := range slices.Concat(j.ledger.drained, left.losses) {
		j.ledger.losses = addIncident(j.ledger.losses, loss)
	}
}

// backlog is what the backend has not taken of earlier processes.
type backlog struct {
	exchanges int64
	number    uint64
	losses    []storage.Loss
	damaged   int64 // entries
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

// countLostDraft counts an entry that will not be written. It needs the mutex.
func (j *Journal) countLostDraft(d *draft, reason string) {
	l := storage.Loss{Reason: reason, Count: 1, From: d.at, To: d.at}
	if d.number > 0 {
		l.Exchanges = 1
		j.counter.end()
	}
	j.countLost(l)
}

// countLost counts losses; they are written before the next entry that can be. It
// needs the mutex.
func (j *Journal) countLost(l storage.Loss) {
	j.lost[l.Reason] += l.Count
	j.losses = addLoss(j.losses, l)
	j.ledger.losses = addIncident(j.ledger.losses, l)
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

// saveLosses writes the losses that no segment knows of, and before them the ends of
// segments that have what was lost. It needs the turn.
func (j *Journal) saveLosses() {
	j.mu.Lock()
	losses, o := j.losses, j.options
	j.losses = nil
	j.mu.Unlock()
	if losses == nil {
		return
	}
	ends := j.ends
	j.ends = nil
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
	j.commit(group, &o)
	if group[0].err == nil {
		return
	}
	j.ends = append(ends, j.ends...)
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range losses {
		j.losses = addLoss(j.losses, l)
	}
}
