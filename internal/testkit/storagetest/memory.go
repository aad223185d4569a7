package storagetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Memory is a backend without a disk, for the tests of what stands above a
// backend. It answers queries with storage.Evaluate. The zero Memory is empty;
// what was written outlives Close.
type Memory struct {
	// Refresh, if not nil, brings the memory up to date before each query.
	Refresh func(context.Context) error

	mu        sync.RWMutex // guards the fields below
	contents  storage.Contents
	positions map[uuid.UUID]storage.Position // by journal
	records   map[storage.RecordKey]*entry
	tags      map[session]tag
	views     map[string]map[string]storage.View // by organisation and name
	changes   map[string][]*storage.Annotation   // of conversations, by organisation
}

type tag struct {
	text string
	at   storage.Timestamp
}

// entry is a record as it was written, and with its annotations. The annotations are kept
// when another version is written.
type entry struct {
	annotations []*storage.Annotation
	record      *storage.Record
}

type session struct{ org, id string }

// Open makes the backend ready for queries.
func (m *Memory) Open(ctx context.Context, h *storage.Host) (storage.Position, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contents = h.Contents
	return m.positions[h.Journal], ctx.Err()
}

// Limits leaves all to the host.
func (*Memory) Limits() storage.Limits { return storage.Limits{} }

// Write applies a batch.
func (m *Memory) Write(ctx context.Context, batch *storage.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return err
	}
	if m.records == nil {
		m.records = make(map[storage.RecordKey]*entry)
		m.tags = make(map[session]tag)
		m.views = make(map[string]map[string]storage.View)
		m.positions = make(map[uuid.UUID]storage.Position)
		m.changes = make(map[string][]*storage.Annotation)
	}
	for _, r := range batch.Records {
		e := &entry{record: new(*r)}
		e.record.Scores, e.record.Feedback = nil, nil
		e.record.Version = storage.Position{}
		key := r.Key()
		if old := m.records[key]; old != nil {
			e.annotations = old.annotations
		}
		for _, f := range e.annotations {
			f.Apply(e.record)
		}
		m.records[key] = e
	}
	for _, f := range batch.Annotations {
		if f.Tag != nil {
			m.tags[session{f.Org, f.SessionID}] = tag{*f.Tag, f.At}
		}
		if f.View != nil {
			m.view(f.Org, *f.View)
		}
		if f.Conversation != nil {
			m.changes[f.Org] = append(m.changes[f.Org], f)
		}
		e := m.records[f.Key()]
		if e == nil {
			continue
		}
		e.annotations = append(e.annotations, f)
		e.record = new(*e.record) // a record that was answered is never written to again
		f.Apply(e.record)
	}
	m.positions[batch.Journal] = batch.End
	return nil
}

// view saves a view, or deletes it.
func (m *Memory) view(org string, v storage.View) {
	if m.views[org] == nil {
		m.views[org] = make(map[string]storage.View)
	}
	m.views[org][v.Name] = v
	if v.Screen == "" {
		delete(m.views[org], v.Name)
	}
}

// query answers a query.
func query[T any](ctx context.Context, m *Memory, answer func() (T, error)) (none T, err error) {
	if m.Refresh != nil {
		if err := m.Refresh(ctx); err != nil {
			return none, err
		}
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.usable(ctx); err != nil {
		return none, err
	}
	return answer()
}

// Requests evaluates the query.
func (m *Memory) Requests(ctx context.Context, q *storage.RequestQuery) ([]*storage.Record, error) {
	return query(ctx, m, func() ([]*storage.Record, error) {
		var failed error
		page := storage.Evaluate(q, m.all(), m.load(ctx, &failed))
		if err := errors.Join(failed, ctx.Err()); err != nil {
			return nil, err
		}
		return page, nil
	})
}

// load reads the content of records, and keeps the errors.
func (m *Memory) load(ctx context.Context, failed *error) func(*storage.Record) *storage.Content {
	return func(r *storage.Record) *storage.Content {
		c, err := m.contents.Content(ctx, r)
		*failed = errors.Join(*failed, err)
		return c
	}
}

// Groups evaluates the query.
func (m *Memory) Groups(ctx context.Context, q *storage.GroupQuery, each func(*storage.GroupTotals) error) error {
	_, err := query(ctx, m, func() (none struct{}, err error) {
		tags := make(map[string]map[string]string)
		for s, tag := range m.tags {
			if tags[s.org] == nil {
				tags[s.org] = make(map[string]string)
			}
			tags[s.org][s.id] = tag.text
		}
		var failed error
		records := storage.Records{All: m.all(), Tags: tags, Content: m.load(ctx, &failed)}
		err = records.Groups(ctx, q, func(g *storage.GroupTotals) error {
			if failed != nil {
				return failed
			}
			return each(g)
		})
		return none, errors.Join(err, failed, ctx.Err())
	})
	return err
}

func (m *Memory) all() []*storage.Record {
	all := make([]*storage.Record, 0, len(m.records))
	for _, e := range m.records {
		all = append(all, e.record)
	}
	return all
}

// Request looks one record up.
func (m *Memory) Request(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	return query(ctx, m, func() (*storage.Record, error) {
		if e := m.records[key]; e != nil {
			return e.record, nil
		}
		return nil, storage.ErrNotFound
	})
}

// Prune deletes at most a hundred records at a time.
func (m *Memory) Prune(ctx context.Context, before storage.Timestamp) (more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return false, err
	}
	maps.DeleteFunc(m.tags, func(_ session, t tag) bool { return t.at < before })
	old := slices.DeleteFunc(m.all(), func(r *storage.Record) bool { return r.CreatedAt >= before })
	const chunk = 100
	for _, r := range old[:min(chunk, len(old))] {
		delete(m.records, r.Key())
	}
	return len(old) > chunk, nil
}

// EraseRecords implements storage.RecordEraser.
func (m *Memory) EraseRecords(ctx context.Context, org string, ids []uuid.UUID, scope storage.ErasureScope) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return err
	}
	m.eraseItems(org, ids)
	for _, id := range ids {
		key := storage.RecordKey{Org: org, ID: id}
		e := m.records[key]
		if e == nil {
			continue
		}
		delete(m.records, key)
		if scope != storage.EraseRecord {
			m.records[key] = &entry{record: e.record.Erased(scope)}
		}
		of := session{org, e.record.SessionID}
		if !slices.ContainsFunc(m.all(), func(r *storage.Record) bool { return session{r.Org, r.SessionID} == of }) {
			delete(m.tags, of)
		}
	}
	return nil
}

// EraseUnused does nothing: the memory has nothing that records share.
func (m *Memory) EraseUnused(ctx context.Context) error { return ctx.Err() }

// SessionTag looks a tag up.
func (m *Memory) SessionTag(ctx context.Context, org, sessionID string) (string, error) {
	return query(ctx, m, func() (string, error) { return m.tags[session{org, sessionID}].text, nil })
}

// Views returns the views of an organisation.
func (m *Memory) Views(ctx context.Context, org string) ([]storage.View, error) {
	return query(ctx, m, func() ([]storage.View, error) {
		byName := func(a, b storage.View) int { return strings.Compare(a.Name, b.Name) }
		return slices.SortedFunc(maps.Values(m.views[org]), byName), nil
	})
}

// Organisations returns the organisations of records, tags, views and conversations.
func (m *Memory) Organisations(ctx context.Context) ([]string, error) {
	return query(ctx, m, func() ([]string, error) {
		orgs := make(map[string]bool)
		for k := range m.records {
			orgs[k.Org] = true
		}
		for s := range m.tags {
			orgs[s.org] = true
		}
		for org := range m.views {
			orgs[org] = true
		}
		for org := range m.changes {
			orgs[org] = true
		}
		return slices.Sorted(maps.Keys(orgs)), nil
	})
}

// SessionTags returns the tags of an organisation's sessions.
func (m *Memory) SessionTags(ctx context.Context, org string) ([]*storage.Annotation, error) {
	return query(ctx, m, func() (tags []*storage.Annotation, err error) {
		for s, t := range m.tags {
			if s.org == org {
				tags = append(tags, &storage.Annotation{Org: org, SessionID: s.id, Tag: &t.text, At: t.at})
			}
		}
		return tags, nil
	})
}

// Forget loses all, as a store does that is restored from an empty backup.
func (m *Memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records, m.tags, m.views, m.changes, m.positions = nil, nil, nil, nil, nil
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
		return storage.ErrUnavailable
	}
	return ctx.Err()
}

var (
	_ storage.Backend      = (*Memory)(nil)
	_ storage.RecordEraser = (*Memory)(nil)
)
