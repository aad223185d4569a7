package clickhouse

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/weirhq/weir/storage"
)

// readAnnotated reads the records of keys, and at the same time their annotations.
func (r *reader) readAnnotated(ctx context.Context, keys []key, read func(context.Context) ([]*storage.Record, error)) (records []*storage.Record, err error) {
	var annotations []annotation
	p := r.withOwnParams()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		annotations, err = p.annotations(ctx, keys)
		return err
	})
	g.Go(func() (err error) {
		records, err = read(ctx)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	annotate(records, annotations)
	return records, nil
}

// annotate adds annotations to their records.
func annotate(records []*storage.Record, annotations []annotation) {
	byID := make(map[uuid.UUID][]*storage.Record, len(records))
	for _, rec := range records {
		byID[rec.ID] = append(byID[rec.ID], rec)
	}
	for i := range annotations {
		for _, rec := range byID[annotations[i].id] {
			annotations[i].addTo(rec)
		}
	}
}

// annotation is a score, feedback or a property that was added to a record later. The value of
// a score that was removed is NaN.
type annotation struct {
	id                  uuid.UUID
	property            bool
	name, text          string
	value               float64
	feedback            int64
	feedbackAt, learned time.Time
}

// annotations reads the annotations of records.
func (r *reader) annotations(ctx context.Context, keys []key) (list []annotation, err error) {
	of := " FINAL WHERE " + all(ofOrg, r.idsCondition(keys))
	err = r.query(ctx, "SELECT request_id, false, name, value, '', feedback_id, feedback_at, learned_at FROM scores"+of+
		" UNION ALL SELECT request_id, true, name, 0, value, 0, learned_at, learned_at FROM late_properties"+of+
		" SETTINGS max_threads = 1", func(rows driver.Rows) error {
		var a annotation
		err := rows.Scan(&a.id, &a.property, &a.name, &a.value, &a.text, &a.feedback, &a.feedbackAt, &a.learned)
		list = append(list, a)
		return err
	})
	return list, err
}

// addTo adds the annotation to its record.
func (a *annotation) addTo(rec *storage.Record) {
	rec.UpdatedAt = max(rec.UpdatedAt, storage.Millis(a.learned))
	switch {
	case a.property:
		if rec.Properties == nil {
			rec.Properties = make(map[string]string)
		}
		rec.Properties[a.name] = a.text
	case math.IsNaN(a.value): // it was removed
	case a.name == storage.FeedbackScore:
		rec.Feedback = &storage.Feedback{ID: a.feedback, Rating: a.value != 0, CreatedAt: storage.Millis(a.feedbackAt)}
	default:
		if rec.Scores == nil {
			rec.Scores = make(map[string]float64)
		}
		rec.Scores[a.name] = a.value
	}
}

// anyLate reports whether a property of that name was added to any record later.
func (r *reader) anyLate(ctx context.Context, name string) (any bool, err error) {
	err = r.query(ctx, "SELECT request_id FROM late_properties WHERE "+all(ofOrg, "name = "+r.text(name))+" LIMIT 1", func(driver.Rows) error {
		any = true
		return nil
	})
	return any, err
}

// SessionTag returns the tag of a session, "" if it has none.
func (b *Backend) SessionTag(ctx context.Context, org, sessionID string) (tag string, err error) {
	err = b.reading(ctx, org, "reading the tag of session "+sessionID+" from ClickHouse", func(r *reader) error {
		return r.query(ctx, "SELECT tag FROM session_tags FINAL WHERE "+all(ofOrg, "session = "+r.text(sessionID)), func(rows driver.Rows) error {
			return rows.Scan(&tag)
		})
	})
	return tag, err
}

// tags calls each with the tags of the organisation's sessions.
func (r *reader) tags(ctx context.Context, each func(session, tag string, at time.Time)) error {
	return r.query(ctx, "SELECT session, tag, learned_at FROM session_tags FINAL WHERE "+ofOrg, func(rows driver.Rows) error {
		var session, tag string
		var at time.Time
		err := rows.Scan(&session, &tag, &at)
		each(session, tag, at)
		return err
	})
}

// SessionTags returns the tags of an organisation's sessions.
func (b *Backend) SessionTags(ctx context.Context, org string) (tags []*storage.Annotation, err error) {
	err = b.reading(ctx, org, "reading the tags of "+org+" from ClickHouse", func(r *reader) error {
		return r.tags(ctx, func(session, tag string, at time.Time) {
			tags = append(tags, &storage.Annotation{Org: org, SessionID: session, Tag: &tag, At: storage.Millis(at)})
		})
	})
	return tags, err
}

// Organisations returns the organisations that have a record, a tag, a view or a conversation.
func (b *Backend) Organisations(ctx context.Context) (orgs []string, err error) {
	conn, _, err := b.opened()
	if err != nil {
		return nil, err
	}
	err = eachRow(ctx, conn, "SELECT DISTINCT org FROM (SELECT DISTINCT org FROM records UNION ALL SELECT DISTINCT org FROM session_tags UNION ALL SELECT DISTINCT org FROM views UNION ALL SELECT DISTINCT org FROM conversation_changes) WHERE org != '' ORDER BY org", nil, textTo(&orgs))
	if err != nil {
		return nil, fmt.Errorf("reading the organisations from ClickHouse: %w", explain(ctx, err))
	}
	return orgs, nil
}

// Views returns the saved views of an organisation, by name.
func (b *Backend) Views(ctx context.Context, org string) (views []storage.View, err error) {
	err = b.reading(ctx, org, "reading the views of "+org+" from ClickHouse", func(r *reader) error {
		return r.query(ctx, "SELECT name, screen, state, updated_at FROM views FINAL WHERE "+ofOrg+" AND screen != '' ORDER BY name", func(rows driver.Rows) error {
			var v storage.View
			var at time.Time
			err := rows.Scan(&v.Name, &v.Screen, &v.State, &at)
			v.UpdatedAt = storage.Millis(at)
			views = append(views, v)
			return err
		})
	})
	return views, err
}
