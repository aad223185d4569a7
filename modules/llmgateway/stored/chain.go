package stored

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// maxChain bounds how many responses a conversation has.
const maxChain = 1000

// History returns the items of the conversation up to the end of the response of an id, as
// input, or ErrNotFound. size bounds the items, in bytes. grow is called with the size of the
// items so far.
func (s *Store) History(ctx context.Context, id string, size int, grow func(context.Context, int64) error) ([]string, error) {
	var turns [][]string // the latest first
	room := size
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
			id = "" // the compaction stands for all that was before it
		} else if items, err = s.Resolve(ctx, InputOf(r.Request)); err != nil {
			return nil, err
		}
		items = append(items, Output(r.Body)...)
		for _, item := range items {
			room -= len(item)
		}
		if turns = append(turns, items); len(turns) > maxChain || room < 0 {
			return nil, plugins.Invalid("previous_response_id", "The conversation behind '%s' is too long.", r.ID)
		}
		if err := grow(ctx, int64(size-room)); err != nil {
			return nil, err
		}
	}
	slices.Reverse(turns)
	return slices.Concat(turns...), nil
}

// Resolve puts items in the place of references to them. A reference stays if its item is not
// found.
func (s *Store) Resolve(ctx context.Context, items []string) ([]string, error) {
	resolved := slices.Clone(items)
	for i, item := range items {
		if !strings.Contains(item, `"item_reference"`) || gjson.Get(item, "type").Str != "item_reference" {
			continue
		}
		whole, err := s.Item(ctx, gjson.Get(item, "id").Str)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		resolved[i] = whole
	}
	return resolved, nil
}
