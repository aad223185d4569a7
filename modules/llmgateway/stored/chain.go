package stored

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"
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

// Resolve puts items in the place of references to them. A reference stays if its item is not
// found. size bounds the items that it adds, in bytes: many references can name one long item.
func (s *Store) Resolve(ctx context.Context, items []string, size int, reserve Reserve) ([]string, error) {
	references := make(map[uuid.UUID][]int) // where items of a record shall stand
	for i, item := range items {
		if strings.Contains(item, `"item_reference"`) && gjson.Get(item, "type").Str == "item_reference" {
			if record, ok := RecordOf(gjson.Get(item, "id").Str); ok {
				references[record] = append(references[record], i)
			}
		}
	}
	resolved := slices.Clone(items)
	added := 0
	for record, places := range references {
		found, err := s.items(ctx, record)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, i := range places {
			item, ok := found[gjson.Get(items[i], "id").Str]
			if !ok {
				continue
			}
			if added += len(item); added > size {
				return nil, plugins.Invalid("input", "The items to which the input refers are too long together.")
			}
			resolved[i] = strings.Clone(item) // it shares the memory of its response
		}
		if err := reserve(ctx, int64(added)); err != nil {
			return nil, err
		}
	}
	return resolved, nil
}
