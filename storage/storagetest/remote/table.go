package remote

import (
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/storagetest"
)

// Batch is a storage.Batch on its way to the server.
type Batch struct {
	Journal uuid.UUID
	ID      string
	Records []*storage.Record
	// Contents are those of Records, by index.
	Contents []Content
	Notes    []Note
	End      storage.Position
}

// Content is content that is known, or not.
type Content struct {
	storage.Content
	Known bool
}

// Note is an annotation. Gob sends an empty tag as none: Tagged tells them apart.
type Note struct {
	storage.Annotation
	Tagged bool
}

// Query asks for the rows of an organisation, or for one record of it.
type Query struct {
	Org string
	ID  uuid.UUID
	One bool
	// Prefilter chooses rows, in JSON; all if it is absent.
	Prefilter []byte
}

// support is what the server can decide of rows without annotations and content. Its
// texts have no exact equality.
func support(l *storage.Leaf) storage.Support {
	switch f := l.Field; {
	case f.Map || f.Content != 0 || f.Group == storage.FeedbackGroup:
		return storage.Unsupported
	case f.Kind == storage.Number || f.Kind == storage.Time:
		return storage.Exact
	case f.Kind == storage.Text && f.Name != "scores_column" && l.Op == storage.Equals:
		return storage.Superset
	}
	return storage.Unsupported
}

// prefilter tells as much as the server can.
func prefilter(p *storage.Program, r *storage.Record) bool {
	return p.Run(func(step int) bool {
		l := *p.Steps[step].Filter.(*storage.Leaf)
		if l.Op == storage.Equals && l.Field.Kind == storage.Text {
			l.Op = storage.Contains
		}
		return storage.Match(&l, r, nil)
	})
}

// Rows are records without annotations, and all annotations in their order.
type Rows struct {
	Records []*storage.Record
	Notes   []Note
}

type row struct {
	journal uuid.UUID
	record  *storage.Record
	content Content
}

// table has rows that replace one another by version, and annotations, also about
// records that it has not.
type table struct {
	visible time.Duration
	arrived []arrival // what queries do not see yet
	rows    map[storage.RecordKey]*row
	notes   map[storage.RecordKey][]Note
	tags    map[string][]Note // and views, and changes of conversations, by organisation
}

type arrival struct {
	*Batch
	at time.Time
}

func (t *table) arrive(b *Batch) { t.arrived = append(t.arrived, arrival{b, time.Now()}) }

// merge makes visible what arrived long enough ago.
func (t *table) merge() {
	for len(t.arrived) > 0 && time.Since(t.arrived[0].at) >= t.visible {
		t.apply(t.arrived[0].Batch)
		t.arrived = t.arrived[1:]
	}
}

func (t *table) apply(b *Batch) {
	for i, r := range b.Records {
		k := r.Key()
		fresh := &row{b.Journal, r, b.Contents[i]}
		if old := t.rows[k]; old != nil {
			if old.journal == b.Journal && r.Version.Before(old.record.Version) {
				continue
			}
			if !fresh.content.Known && old.journal == b.Journal && r.Content == old.record.Content {
				fresh.content = old.content // it is gone from the journal
			}
		}
		t.rows[k] = fresh
	}
	for _, n := range b.Notes {
		if n.Tagged || n.View != nil || n.Conversation != nil {
			t.tags[n.Org] = append(t.tags[n.Org], n)
		}
		if n.RequestID != uuid.Nil {
			k := n.Key()
			t.notes[k] = append(t.notes[k], n)
		}
	}
}

func (t *table) answer(q *Query) (rows Rows, err error) {
	t.merge()
	f, err := storage.ParseFilter(q.Prefilter)
	if err != nil {
		return rows, err
	}
	program := storage.Compile(f, nil)
	if q.One {
		k := storage.RecordKey{Org: q.Org, ID: q.ID}
		if r := t.rows[k]; r != nil {
			rows = Rows{[]*storage.Record{r.record}, t.notes[k]}
		}
		return rows, nil
	}
	for k, r := range t.rows {
		if k.Org == q.Org && prefilter(program, r.record) {
			rows.Records = append(rows.Records, r.record)
			rows.Notes = append(rows.Notes, t.notes[k]...)
		}
	}
	rows.Notes = append(rows.Notes, t.tags[q.Org]...)
	return rows, nil
}

func (t *table) organisations() []string {
	t.merge()
	orgs := make(map[string]bool)
	for k := range t.rows {
		orgs[k.Org] = true
	}
	for org := range t.tags {
		orgs[org] = true
	}
	return slices.Sorted(maps.Keys(orgs))
}

func (t *table) content(k storage.RecordKey) (c Content) {
	t.merge()
	if r := t.rows[k]; r != nil {
		c = r.content
	}
	return c
}

// prune deletes at most a hundred records at a time.
func (t *table) prune(before storage.Timestamp) (more bool) {
	t.merge()
	for org, tags := range t.tags {
		var kept []Note
		for _, n := range tags {
			if n.At >= before || !n.Tagged {
				kept = append(kept, n)
			}
		}
		t.tags[org] = kept
	}
	left := 100
	for k, r := range t.rows {
		if r.record.CreatedAt >= before {
			continue
		}
		if left == 0 {
			return true
		}
		left--
		delete(t.rows, k)
		delete(t.notes, k)
	}
	return false
}

func (t *table) pruneConversations(before storage.Timestamp) {
	t.merge()
	for org, notes := range t.tags {
		var kept []Note
		var changes []*storage.Annotation
		for _, n := range notes {
			if n.Conversation != nil {
				changes = append(changes, &n.Annotation)
			} else {
				kept = append(kept, n)
			}
		}
		for _, a := range storagetest.PruneConversations(changes, before) {
			kept = append(kept, Note{Annotation: *a})
		}
		t.tags[org] = kept
	}
}

func (t *table) pruneContent(before storage.Timestamp) {
	t.merge()
	for _, r := range t.rows {
		if r.record.CreatedAt < before {
			r.content = Content{}
		}
	}
}
