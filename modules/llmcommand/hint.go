package llmcommand

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/nearest"
	"github.com/weirhq/weir/storage"
)

// hintRecords is how many of the latest records are searched for the names of
// their properties.
const hintRecords = 100

// writeHints tells why a filter may have matched nothing: a list of values where
// one is expected, or a property that is spelt otherwise.
func writeHints(ctx context.Context, w io.Writer, c *client, f storage.Filter) error {
	var properties []string
	for l := range storage.Leaves(f) {
		if first, rest, list := strings.Cut(l.Text, ","); list && l.Op == storage.Equals {
			_, err := fmt.Fprintf(w, "Hint: %q is one value; for several write <field>=%s or <field>=%s.\n",
				printable(l.Text), printable(first), printable(rest))
			if err != nil {
				return err
			}
		}
		if l.Field.Kind == storage.Text && l.Field.Map && !slices.Contains(properties, l.Key) {
			properties = append(properties, l.Key)
		}
	}
	if len(properties) == 0 {
		return nil
	}
	names, err := propertyNames(ctx, c)
	if err != nil {
		return err
	}
	for _, name := range properties {
		if near := nearest.Name(name, names); near != "" && near != name {
			if _, err := fmt.Fprintf(w, "Hint: recent requests have the property %s, not %s; letter case matters.\n", printable(near), printable(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// propertyNames returns the names of the properties of the latest records.
func propertyNames(ctx context.Context, c *client) (names []string, err error) {
	for record, err := range c.requests(ctx, &requestQuery{Filter: storage.AppendJSON(nil, storage.All{}), Limit: hintRecords, IncludeContent: new(false)}) {
		if err != nil {
			return nil, err
		}
		record.Get("properties").ForEach(func(name, _ gjson.Result) bool {
			if !slices.Contains(names, name.Str) {
				names = append(names, name.Str)
			}
			return true
		})
	}
	return names, nil
}
