package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/weirhq/weir/storage"
)

// question is a query to which both stores must give equal answers.
type question struct {
	name string
	ask  func(ctx context.Context, b storage.Backend) (any, error)
}

// askedRecords is how many records, users and sessions a question asks for.
const askedRecords = 100

// compareAnswers asks both stores what dashboards ask.
func (c *comparer) compareAnswers(ctx context.Context, w storage.Window) error {
	for _, q := range questions(c.hour.Organisation, w) {
		from, to, err := both(ctx, c.Options, func(b storage.Backend) (json.RawMessage, error) {
			answer, err := q.ask(ctx, b)
			if err != nil {
				return nil, err
			}
			return json.Marshal(answer)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		c.Queries++
		if !bytes.Equal(from, to) {
			c.differs(q.name)
		}
	}
	return nil
}

// answer asks a query of a backend.
func answer[A any](q storage.Question[A]) func(context.Context, storage.Backend) (any, error) {
	return func(ctx context.Context, b storage.Backend) (any, error) { return q.Answer(ctx, b) }
}

func questions(org string, w storage.Window) []question {
	facets := &storage.FacetQuery{Org: org, Filter: storage.All{}, Window: w}
	for _, name := range storage.Dimensions {
		facets.Fields = append(facets.Fields, storage.Dimension{Name: name})
	}
	series := storage.Series{Quantile: storage.DefaultQuantile}
	questions := []question{
		{"totals by hour", func(ctx context.Context, b storage.Backend) (any, error) {
			cells := make(map[string]storage.Cell)
			err := b.Groups(ctx, &storage.GroupQuery{Org: org, Filter: storage.All{}, Window: w, Increment: storage.ByHour, Details: true},
				func(g *storage.GroupTotals) error {
					for _, cell := range g.Cells {
						cells[cell.Start.String()] = cell
					}
					return nil
				})
			return cells, err
		}},
		{"values of fields", answer(facets)},
		{"user overview", answer(&storage.UserOverviewQuery{Org: org, Filter: storage.All{}, Window: w, Series: series})},
		{"session metrics", answer(&storage.SessionMetricsQuery{Org: org, Filter: storage.All{}, Window: w, Series: series})},
		{"scores by day", answer(&storage.ScoreQuery{Org: org, Filter: storage.All{}, Window: w, Increment: storage.ByDay})},
	}
	for _, key := range []storage.SortKey{storage.SortCreatedAt, storage.SortCost, storage.SortLatency, storage.SortTotalTokens, storage.SortUserID} {
		questions = append(questions, question{"requests by " + string(key), func(ctx context.Context, b storage.Backend) (any, error) {
			q := &storage.RequestQuery{Org: org, Filter: windowFilter(w), Sort: []storage.Sort{{Key: key, Desc: true}}, Limit: askedRecords}
			records, err := b.Requests(ctx, q)
			var ids []string
			for _, r := range records {
				ids = append(ids, r.ID.String())
			}
			return ids, err
		}})
	}
	for _, key := range []storage.UserSortKey{storage.UserLastActive, storage.UserCost} {
		q := &storage.UserQuery{Org: org, Filter: storage.All{}, Window: w, Sort: []storage.UserSort{{Key: key, Desc: true}}, Limit: askedRecords}
		questions = append(questions, question{"users by " + string(key), answer(q)})
	}
	for _, key := range []storage.SessionSortKey{storage.SessionCreatedAt, storage.SessionTotalCost} {
		q := &storage.SessionQuery{Org: org, Filter: storage.All{}, Window: w, Sort: []storage.SessionSort{{Key: key, Desc: true}}, Limit: askedRecords}
		questions = append(questions, question{"sessions by " + string(key), answer(q)})
	}
	return questions
}
