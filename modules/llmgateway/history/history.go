package history

import (
	"context"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// maxChain is the largest number of responses that a conversation can have.
const maxChain = 1000

// Reserve waits for the memory of all bytes that have joined a request.
type Reserve func(ctx context.Context, size int64) error

// History returns the items of the conversation up to the end of the response of an id, as
// input, or ErrNotFound. size bounds the items, in bytes.
func (s *Store) History(ctx context.Context, id string, size int, reserve Reserve) ([]string, error) {
	var turns [][]string // the latest first
	remaining := size
	for id != "" {
		r, err := s.Find(ctx, id)
		if err != nil {
			return nil, err
		}
		if status := gjson.GetBytes(r.Body, "status").Str; status != "completed" && status != "incomplete" {
			return nil, plugins.Invalid("previous_response_id", "The response '%s' is %s: only one that has ended can be continued.", id, status)
		}
		id = gjson.GetBytes(r.Request, "previous_response_id").Str
		var items []string
		if EndsWithTrigger(r.Request) {
			id = "" // the compaction replaces all that was before it
		} else if items, err = s.Resolve(ctx, InputOf(r.Request), remaining, func(ctx context.Context, added int64) error {
			return reserve(ctx, int64(size-remaining)+added)
		}); err != nil {
			return nil, err
		}
		items = append(items, Output(r.Body)...)
		for _, item := range items {
			remaining -= len(item)
		}
		if turns = append(turns, items); len(turns) > maxChain || remaining < 0 {
			return nil, plugins.Invalid("previous_response_id", "The conversation up to '%s' is too long.", r.ID)
		}
		if err := reserve(ctx, int64(size-remaining)); err != nil {
			return nil, err
		}
	}
	slices.Reverse(turns)
	return slices.Concat(turns...), nil
}
