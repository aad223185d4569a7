package llmquery

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/weirhq/weir/storage"
)

// A search reads its requests in steps of about searchPace, so that readers see its progress. The first
// step is short.
const (
	firstSearchStep = 500
	searchPace      = 200 * time.Millisecond
)

// searchRequests answers the newest requests that a filter matches, as they are found. A filter
// of content reads the bodies; this takes long if few requests match.
func searchRequests(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	if b.json("filter") == nil {
		b.fail("filter", `is required; "all" matches every request`)
	}
	q := &storage.RequestQuery{
		Org:    c.org,
		Filter: storage.And(b.filter("filter", storage.RequestResponse), within(b.window())),
		Limit:  b.integer("limit", defaultRequests, maxLimit),
	}
	if q.Limit == 0 {
		b.fail("limit", "at least 1 is expected")
	}
	b.readCursor(q)
	s := shape{content: b.includeContent(), oneLine: true}
	if b.flag("includePreview") {
		s.preview = q.Filter
	}
	if err := b.finish(); err != nil {
		return err
	}
	c.ctx = c.r.Context() // no timeout: it lasts as long as its client
	a := newAnswer(c, s)
	defer a.close()
	a.contentType = "application/x-ndjson"
	search := &search{call: c, query: q, step: firstSearchStep}
	for {
		records, more, err := search.next()
		if err == nil {
			err = a.writeStep(records, q, more)
		}
		if err != nil {
			return a.abandon(err)
		}
		if !more || q.Limit == 0 {
			return nil
		}
	}
}

// search looks through requests, the newest first.
type search struct {
	*call
	// query is the rest of the search: the next step begins at After.
	query *storage.RequestQuery
	step  int // requests
}

// next searches a step, and reports whether another one follows.
func (s *search) next() (found []*storage.Record, more bool, err error) {
	candidates := storage.PlanFilter(s.query.Filter, func(l *storage.Leaf) storage.Support {
		if l.Field.Content != 0 {
			return storage.Unsupported
		}
		return storage.Exact
	}).Prefilter
	for {
		last, err := s.page(&storage.RequestQuery{Org: s.org, Filter: candidates, After: s.query.After, Offset: s.step - 1, Limit: 1})
		if err != nil {
			return nil, false, err
		}
		q := *s.query
		q.Limit++ // to see whether there are more
		if more = len(last) > 0; more {
			q.Filter = storage.And(q.Filter, within(storage.Window{From: last[0].CreatedAt, To: storage.Always.To}))
		}
		begin := time.Now()
		found, err = s.page(&q)
		if errors.Is(err, context.DeadlineExceeded) && s.step > 1 {
			s.step = max(1, s.step/8) // its bodies are larger than those before
			continue
		}
		if err != nil {
			return nil, false, err
		}
		switch took := time.Since(begin); {
		case took < searchPace/2:
			s.step *= 2
		case took > searchPace:
			s.step = max(1, s.step/2)
		}
		if len(found) == q.Limit {
			found, more = found[:s.query.Limit], true
		}
		switch s.query.Limit -= len(found); {
		case s.query.Limit == 0 && more:
			s.query.After = q.Cursor(found[len(found)-1], nil)
		case more: // after all of its time
			s.query.After = q.Cursor(&storage.Record{CreatedAt: last[0].CreatedAt}, nil)
		}
		return found, more, nil
	}
}

// writeStep writes the line of a step.
func (a *answer) writeStep(records []*storage.Record, q *storage.RequestQuery, more bool) error {
	if err := a.expect(records...); err != nil {
		return err
	}
	a.append(`{"data":[`)
	for i, r := range records {
		if i > 0 {
			a.append(",")
		}
		if err := a.record(r); err != nil {
			return err
		}
	}
	var line struct {
		Error          *string            `json:"error"`
		SearchedBackTo *storage.Timestamp `json:"searched_back_to"`
		Next           *string            `json:"next"`
	}
	if more {
		at, _ := q.After.Values[0].Any().(int64)
		line.SearchedBackTo, line.Next = new(storage.Timestamp(at)), new(q.After.String())
	}
	rest, err := json.Marshal(line)
	if err != nil {
		return err
	}
	a.append("],")
	a.buf = append(append(a.buf, rest[1:]...), '\n')
	a.flush()
	if a.err != nil {
		return a.err
	}
	return http.NewResponseController(a.call.w).Flush()
}
