package anthropic

import (
	"github.com/weirhq/weir/plugins/translate"
)

// cacheControl marks the end of a prefix to be cached.
type cacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

// cacheOf lasts five minutes, or an hour where the client asks for longer: everywhere, or at a part.
func cacheOf(p *translate.Request, longer bool) *cacheControl {
	c := &cacheControl{Type: "ephemeral"}
	if longer || p.CachesLonger() {
		c.TTL = "1h"
	}
	return c
}

// setCache lets the provider choose the prefixes to cache, as OpenAI does, where
// the client names a cache and does not mark the prefixes itself.
func (r *request) setCache(p *translate.Request) error {
	limit := MaxMarks
	if p.PromptCacheKey != "" && string(p.Field("prompt_cache_options.mode")) != `"explicit"` {
		r.CacheControl = cacheOf(p, false)
		limit--
	}
	return r.limitMarks(p, limit)
}

// MaxMarks is how many marks of prefixes a request may have.
const MaxMarks = 4

// Surplus returns which of n marks, in their order, are too many: those between the first, which
// ends what all calls have in common, and the last ones, which end what the call before had.
func Surplus(n, limit int) (from, to int) { return 1, 1 + max(n-limit, 0) }

// TooManyMarks is what a warning says of marks that are left out.
const TooManyMarks = "with the first and the last marks of prefixes to be cached, because the provider takes only four"

func (r *request) limitMarks(p *translate.Request, limit int) error {
	var marks []**cacheControl
	for i := range r.Tools {
		if mark := &r.Tools[i].CacheControl; *mark != nil {
			marks = append(marks, mark)
		}
	}
	add := func(blocks []any) {
		for _, block := range blocks {
			if mark := markOf(block); *mark != nil {
				marks = append(marks, mark)
			}
		}
	}
	add(r.System)
	for _, m := range r.Messages {
		add(m.Content)
	}
	from, to := Surplus(len(marks), limit)
	if from == to {
		return nil
	}
	for _, mark := range marks[from:to] {
		*mark = nil
	}
	return p.DropWithWarning("input", TooManyMarks)
}

// markOf is where the mark of a block is, of one that can have none a place that is not read.
func markOf(block any) **cacheControl {
	switch b := block.(type) {
	case *textBlock:
		return &b.CacheControl
	case *mediaBlock:
		return &b.CacheControl
	case *toolResultBlock:
		return &b.CacheControl
	}
	return new(*cacheControl)
}
