package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

const (
	// exchangeEvery is how often a journal reads the notes of its peers.
	exchangeEvery = time.Second
	// renewEvery is how often it renews a note that says nothing new.
	renewEvery = time.Hour
	// maxSilence is the age of a note from which on nobody waits for its journal: the machine may be gone.
	maxSilence = 7 * 24 * time.Hour
	// maxAbsence is the age of a note from which on no erasure names its journal.
	maxAbsence = 30 * 24 * time.Hour
	// patience is how long an erasure waits for answers before the backend erases what is known. It erases
	// again once all have answered.
	patience = 30 * time.Second
)

// peers are the other journals that write to the backend. By a note, each says what it has erased, and asks
// the others a question: has the backend all that you had when you read this, and have you deleted it from
// your segments? Who answers also knows what the asking journal has erased.
type peers struct {
	j     *Journal
	board storage.Peers // nil if the journal is the backend's only one

	// turn is held while notes are exchanged. It guards the fields up to mu.
	turn sync.Mutex
	// listed is the number of entries in the list of what this journal has erased. published is how much of its
	// file they have, 0 before the first exchange.
	listed, published int64
	// learned is how many entries of each peer's list this journal knows.
	learned map[uuid.UUID]int64
	// answering are the questions of peers that this journal has read and not answered.
	answering map[uuid.UUID]question
	// note is this journal's own, as the last exchange has found or left it.
	note peerNote

	// mu guards the fields.
	mu sync.Mutex
	// notes are those of all journals, as they were read last, nil before the first exchange. The map never
	// changes.
	notes map[uuid.UUID]peerNote
	// failing is true if the last exchange has failed.
	failing bool
}

// question is a question that is answered once no raw segment up to one is left.
type question struct {
	number  int64
	segment uint64
}

// peerNote is what a journal tells its peers, as JSON.
type peerNote struct {
	// Host is where it runs.
	Host string
	// Asked is the number of its last question, Listed how many entries its list of erased records has.
	Asked, Listed int64 `json:",omitempty"`
	// Answered are the last questions of its peers that it has answered.
	Answered map[uuid.UUID]int64 `json:",omitempty"`
	// Left is true once it has ended without leaving anything behind.
	Left bool `json:",omitempty"`

	age time.Duration
}

// exchange reads the notes of all journals, and replaces this journal's if it has something new to say. news is
// true if any says something new.
func (p *peers) exchange(ctx context.Context) (news bool, err error) {
	if p.board == nil {
		return false, nil
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	notes, err := p.read(ctx)
	if err != nil {
		return false, err
	}
	self := p.j.identity
	own, there := notes[self]
	if p.published == 0 || own.Listed < p.note.Listed || own.Asked < p.note.Asked { // the notes of all may be lost
		if err := p.compareList(ctx, notes); err != nil {
			return false, err
		}
	}
	next := own
	next.Left = false
	next.Host, _ = os.Hostname()
	if next.Answered, err = p.answer(ctx, notes); err != nil {
		return false, err
	}
	asked, file := p.j.erasures.ask()
	if err := p.publish(ctx, file); err != nil {
		return false, err
	}
	next.Asked, next.Listed = asked, p.listed
	changed := !there || !reflect.DeepEqual(next, own)
	if changed || own.age > renewEvery {
		if err := p.leaveNote(ctx, self, next); err != nil {
			return false, err
		}
	}
	p.note = next
	p.mu.Lock()
	defer p.mu.Unlock()
	news = changed || !maps.EqualFunc(notes, p.notes, func(a, b peerNote) bool {
		a.age, b.age = 0, 0
		return reflect.DeepEqual(a, b)
	})
	p.notes = notes
	return news, nil
}

// exchangeNotes is exchange for maintenance, which tries again a second later.
func (p *peers) exchangeNotes(ctx context.Context) (news bool) {
	if p.board == nil || !p.j.delivery.isConnected() {
		return false
	}
	news, err := p.exchange(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && !p.failing && ctx.Err() == nil {
		p.j.options.logger().Error("what other nodes have erased is not known: it is tried again each second", zap.Error(err))
	}
	p.failing = err != nil
	return news
}

// read reads all notes. A node without a note, or whose note cannot be read, has answered nothing.
func (p *peers) read(ctx context.Context) (map[uuid.UUID]peerNote, error) {
	found, err := p.board.Notes(ctx)
	if err != nil {
		return nil, err
	}
	notes := make(map[uuid.UUID]peerNote, len(found))
	for id, note := range found {
		n := peerNote{}
		if note.Text == "" {
			n.Host = id.String() + " (of an earlier version, or it ended before it said anything)"
			if note.Age == 0 {
				if err := p.leaveNote(ctx, id, n); err != nil { // from now on it has an age
					return nil, err
				}
			}
		} else if err := json.Unmarshal([]byte(note.Text), &n); err != nil {
			n = peerNote{Host: id.String() + " (its note cannot be read)"}
			if p.notes[id].Host != n.Host {
				p.j.options.logger().Error("erasures wait for a node whose note cannot be read: start it, and it leaves another", zap.Stringer("node", id), zap.Error(err))
			}
		}
		n.age = note.Age
		notes[id] = n
	}
	return notes, nil
}

func (p *peers) leaveNote(ctx context.Context, journal uuid.UUID, n peerNote) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return p.board.LeaveNote(ctx, journal, string(text))
}

// compareList compares the list that the backend has with the journal's file: what it lacks is published
// once more, and no question has the number of an earlier one, also if the own note is gone.
func (p *peers) compareList(ctx context.Context, notes map[uuid.UUID]peerNote) error {
	entries, err := p.board.ErasedBy(ctx, p.j.identity, 0)
	if err != nil {
		return err
	}
	l := &p.j.erasures
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = max(l.asked, notes[p.j.identity].Asked)
	for _, n := range notes {
		l.asked = max(l.asked, n.Answered[p.j.identity])
	}
	p.listed, p.published = int64(len(entries)), erasedKeyBytes
	r := l.records.Load()
	if r == nil || r.key == nil {
		return nil
	}
	var there erasedSet
	for _, entry := range entries {
		if len(entry) > erasedKeyBytes && bytes.Equal(entry[:erasedKeyBytes], r.key) {
			there = there.with(entry[erasedKeyBytes:])
		}
	}
	if len(there.lacking(r.set)) == 0 {
		p.published = r.file.Size
	}
	return nil
}

// publish adds to the list what the file has up to a size.
func (p *peers) publish(ctx context.Context, size int64) error {
	if size <= p.published {
		return nil
	}
	f, err := os.Open(filepath.Join(p.j.dir, erasedName))
	if err != nil {
		return err
	}
	defer f.Close()
	entry := make([]byte, erasedKeyBytes+size-p.published)
	if err := readAt(f, entry[:erasedKeyBytes], 0); err != nil {
		return err
	}
	if err := readAt(f, entry[erasedKeyBytes:], p.published); err != nil {
		return err
	}
	if err := p.board.AddErased(ctx, p.j.identity, p.listed+1, entry); err != nil {
		p.published = 0 // the backend may have the entry all the same: compareList asks
		return err
	}
	p.listed++
	p.published = size
	return nil
}

// answer learns what peers have erased, and returns the questions that are answered.
func (p *peers) answer(ctx context.Context, notes map[uuid.UUID]peerNote) (answered map[uuid.UUID]int64, err error) {
	answered = maps.Clone(notes[p.j.identity].Answered)
	asked := false
	for id, n := range notes {
		if id == p.j.identity {
			continue
		}
		if n.Listed < p.learned[id] { // it has begun its list anew
			p.learned[id] = 0
		}
		if n.Listed > p.learned[id] {
			entries, err := p.board.ErasedBy(ctx, id, p.learned[id])
			if err != nil {
				return nil, err
			}
			p.j.erasures.learn(entries)
			p.learned[id] += int64(len(entries))
		}
		if _, known := p.answering[id]; !known && n.Asked > answered[id] && n.Listed <= p.learned[id] {
			p.answering[id] = question{n.Asked, p.j.log.newestRaw()}
			asked = true
		}
	}
	if asked {
		p.j.log.turn.Lock()
		if s := p.j.log.active; s != nil {
			p.j.log.close(s) // the drain wakes maintenance when the backend has all of it
		}
		p.j.log.turn.Unlock()
	}
	oldest := p.j.log.oldestRaw()
	for id, q := range p.answering {
		if q.segment < oldest {
			if answered == nil {
				answered = make(map[uuid.UUID]int64)
			}
			answered[id] = q.number
			delete(p.answering, id)
		}
	}
	return answered, nil
}

// unanswered lists the nodes that have not answered a question, without those that have left or are silent.
// Before the notes were read with the question among them, nobody knows which nodes there are.
func (p *peers) unanswered(number int64) (hosts []string) {
	if p.board == nil || number == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.notes[p.j.identity].Asked < number {
		return []string{"all other nodes"}
	}
	for id, n := range p.notes {
		if id != p.j.identity && !n.Left && n.age < maxSilence && n.Answered[p.j.identity] < number {
			hosts = append(hosts, n.Host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// silent lists the nodes that nobody waits for although they have not left, until they are forgotten.
func (p *peers) silent() (hosts []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, n := range p.notes {
		if id != p.j.identity && !n.Left && n.age >= maxSilence && n.age < maxAbsence {
			hosts = append(hosts, n.Host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// leave says that the journal has ended, if it leaves nothing behind. Nothing else runs any more.
func (p *peers) leave(ctx context.Context) {
	if p.board == nil || ctx.Err() != nil || !p.j.delivery.isConnected() {
		return
	}
	m := &p.j.maintenance
	m.sealer.noContent, m.sealer.erased = true, p.j.erasures.records.Load()
	for _, s := range m.deliveredSegments() {
		if err := m.seal(ctx, &m.sealer, s); err != nil {
			return
		}
	}
	if p.j.log.newestRaw() > 0 {
		return
	}
	if _, err := p.exchange(ctx); err != nil {
		return
	}
	last := p.note
	last.Left = true
	if err := p.leaveNote(ctx, p.j.identity, last); err != nil {
		p.j.options.logger().Warn("other nodes wait for this one before their erasures are done", zap.Error(err))
	}
}
