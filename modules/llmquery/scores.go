package llmquery

import (
	"github.com/weirhq/weir/storage"
)

// queryScores answers POST /v1/dashboard/scores/query.
func queryScores(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	filter, applies, err := c.filter(b, "userFilter", storage.RequestResponse)
	if err != nil {
		return err
	}
	times := b.object("timeFilter")
	q := &storage.ScoreQuery{
		Org:       c.org,
		Filter:    filter,
		Window:    storage.Window{From: times.time("start", storage.Always.From), To: times.time("end", storage.Always.To)},
		Zone:      b.zone("timeZoneDifference"),
		Increment: storage.ByDay,
	}
	if increment := b.text("dbIncrement"); increment != "" {
		if q.Increment, err = storage.ParseIncrement(increment); err != nil {
			b.fail("dbIncrement", "%v", err)
		}
	}
	if *b.err != nil {
		return *b.err
	}
	if !applies {
		q.Window = nothing
	}
	points, err := c.journal.Backend().Scores(c.ctx, q)
	if err != nil {
		return err
	}
	return c.data(points)
}
