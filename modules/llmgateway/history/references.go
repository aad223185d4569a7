package history

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

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
