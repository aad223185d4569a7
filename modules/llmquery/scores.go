package llmquery

import "github.com/weirhq/weir/storage"

// queryScores answers POST /v1/dashboard/scores/query.
func queryScores(c *call) error {
	return ask(c, c.journal.Backend().Scores, func(b *body) *storage.ScoreQuery {
		times := b.object("timeFilter")
		return &storage.ScoreQuery{
			Org:       c.org,
			Filter:    c.filter(b, "userFilter", storage.RequestResponse),
			Window:    storage.Window{From: times.time("start", storage.Always.From), To: times.time("end", storage.Always.To)},
			Zone:      b.zone("timeZoneDifference"),
			Increment: b.increment("dbIncrement"),
		}
	})
}
