package llmquery

import "github.com/weirhq/weir/storage"

// queryScores answers POST /v1/dashboard/scores/query.
func queryScores(c *call) error {
	return ask(c, func(b *body) *storage.ScoreQuery {
		times := b.object("timeFilter")
		return &storage.ScoreQuery{
			Org:       c.org,
			Filter:    b.filter("userFilter", storage.RequestResponse),
			Window:    storage.Window{From: parsed(times, "start", storage.ParseTimestamp, storage.Always.From), To: parsed(times, "end", storage.ParseTimestamp, storage.Always.To)},
			Zone:      b.zone("timeZoneDifference"),
			Increment: parsed(b, "dbIncrement", storage.ParseIncrement, storage.ByDay),
		}
	})
}
