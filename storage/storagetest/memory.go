package storagetest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Memory is a backend without a disk, for the tests of what stands above a
// backend. It answers queries with storage.Evaluate. The zero Memory is empty;
// what was written outlives Close.
type Memory struct {
	mu       sync.RWMutex
	contents storage.Contents
	position storage.Position
	records  map[uuid.UUID]*entry
	tags     map[session]string
	ledger   storage.Ledger
	told     map[told]bool
}

// told is a loss of the batch that ends at a position.
type told struct {
	storage.Loss
	storage.Position
}

// entry is a record as it was written, and with its late facts, which are kept
// when another version is written.
type entry struct {
	facts  []*storage.Annotation
	record *storage.Record
}

type session struct{ org, id string }

// Open makes the backend ready for queries.
func (m *Memory) Open(ctx context.Context, contents storage.Contents) (storage.Position, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contents = contents
	return m.position, ctx.Err()
}

// Write applies a batch.
func (m *Memory) Write(ctx context.Context, batch *storage.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return err
	}
	if m.records == nil {
		m.records = make(map[uuid.UUID]*entry)
		m.tags = make(map[session]string)
		m.told = make(map[told]bool)
	}
	for _, r := range batch.Records {
		e := &entry{record: clone(r)}
		e.record.Scores, e.record.Feedback = nil, nil
		if old := m.records[r.ID]; old != nil {
			e.facts = old.facts
		}
		for _, f := range e.facts {
			apply(e.record, f)
		}
		m.records[r.ID] = e
	}
	for _, f := range batch.Annotations {
		if f.Tag != nil {
			m.tags[session{f.Org, f.SessionID}] = *f.Tag
		}
		e := m.records[f.RequestID]
		if e == nil || e.record.Org != f.Org {
			continue
		}
		e.facts = append(e.facts, f)
		e.record = clone(e.record)
		apply(e.record, f)
	}
	for _, l := range batch.Losses {
		if this := (told{l, batch.End}); !m.told[this] {
			m.told[this] = true
			m.ledger.Losses = append(m.ledger.Losses, l)
		}
	}
	slices.SortStableFunc(m.ledger.Losses, func(a, b storage.Loss) int { return cmp.Compare(a.From, b.From) })
	m.ledger.Recorded, m.ledger.Number = batch.Recorded, batch.Number
	m.position = batch.End
	return nil
}

// apply adds a late fact to a record.
func apply(r *storage.Record, f *storage.Annotation) {
	if len(f.Scores) > 0 {
		r.Scores = merged(r.Scores, f.Scores)
	}
	if f.Feedback != nil {
		feedback := *f.Feedback
		r.Feedback = &feedback
	}
	if f.Property != nil {
		r.Properties = merged(r.Properties, map[string]string{f.Property.Name: f.Property.Value})
	}
	r.UpdatedAt = max(r.UpdatedAt, f.At)
}

func merged[V any](a, b map[string]V) map[string]V {
	m := make(map[string]V, len(a)+len(b))
	maps.Copy(m, a)
	maps.Copy(m, b)
	return m
}

// clone copies what a late fact may change. Records that were answered are never
// written to again.
func clone(r *storage.Record) *storage.Record {
	c := *r
	return &c
}

// Requests evaluates the query.
func (m *Memory) Requests(ctx context.Context, q *storage.RequestQuery) ([]*storage.Record, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	var failed error
	load := func(r *storage.Record) *storage.Content {
		c, err := m.contents.Content(ctx, r.Content)
		failed = errors.Join(failed, err)
		return c
	}
	page := storage.Evaluate(q, m.all(), load)
	if err := errors.Join(failed, ctx.Err()); err != nil {
		return nil, err
	}
	return page, nil
}

func (m *Memory) all() []*storage.Record {
	all := make([]*storage.Record, 0, len(m.records))
	for _, e := range m.records {
		all = append(all, e.record)
	}
	return all
}

// Request looks one record up.
func (m *Memory) Request(ctx context.Context, org string, id uuid.UUID) (*storage.Record, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	e := m.records[id]
	if e == nil || e.record.Org != org {
		return nil, storage.ErrNotFound
	}
	return e.record, nil
}

// Exists looks an id up.
func (m *Memory) Exists(ctx context.Context, id uuid.UUID) (bool, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.records[id] != nil, m.usable(ctx)
}

// Prune deletes at most a hundred records at a time.
func (m *Memory) Prune(ctx context.Context, before storage.Timestamp) (more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return false, err
	}
	old := slices.DeleteFunc(m.all(), func(r *storage.Record) bool { return r.CreatedAt >= before })
	const chunk = 100
	for _, r := range old[:min(chunk, len(old))] {
		delete(m.records, r.ID)
	}
	return len(old) > chunk, nil
}

// SessionTag looks a tag up.
func (m *Memory) SessionTag(ctx context.Context, org, sessionID string) (string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.tags[session{org, sessionID}], m.usable(ctx)
}

// Ledger is what the batches told.
func (m *Memory) Ledger(ctx context.Context) (storage.Ledger, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	l := m.ledger
	l.Losses = slices.Clone(l.Losses)
	return l, m.usable(ctx)
}

// Close ends the use of the backend until it is opened again.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contents = nil
	return nil
}

func (m *Memory) usable(ctx context.Context) error {
	if m.contents == nil {
		return errors.New("memory: not open")
	}
	return ctx.Err()
}

var _ storage.Backend = (*Memory)(nil)
