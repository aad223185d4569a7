package question

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/storage"
)

// Buckets are the API's names of the times by which --by groups.
var Buckets = map[string]storage.BucketWidth{"min": "1m", "hour": "1h", "day": "1d", "week": "7d", "month": storage.BucketMonth}

// GroupTotals has a question of /v1/metrics/query group by a field, a time or both. Days begin at
// midnight here, unless utc.
func GroupTotals(body map[string]any, by []string, utc bool) error {
	for _, name := range by {
		if width, ok := Buckets[name]; ok && body["bucket"] == storage.BucketNone {
			body["bucket"] = width
			if !utc {
				_, offset := time.Now().Zone()
				body["timezoneDifference"] = -offset / 60
			}
		} else if body["groupBy"] == nil && !ok {
			field := Dimension(name)
			if _, err := storage.ParseDimension(field); err != nil {
				return fmt.Errorf("by: %w", err)
			}
			body["groupBy"] = field
		} else {
			return fmt.Errorf("by: expected one field and one time, not %q besides another", name)
		}
	}
	return nil
}

// TotalRows are the rows of what /v1/metrics/query answers to body: groups, or times, or both.
func TotalRows(data gjson.Result, body map[string]any) (rows []gjson.Result) {
	series := data.Get("groups").Array()
	if body["groupBy"] == nil {
		series = []gjson.Result{data}
	}
	for _, group := range series {
		points := group.Get("points").Array()
		if body["bucket"] == storage.BucketNone {
			points = []gjson.Result{group.Get("totals")}
		}
		key := cmp.Or(group.Get("key").Raw, "null")
		if group.Get("others").Exists() {
			key = Quote(fmt.Sprintf("(%d others)", group.Get("others").Int()))
		}
		for _, point := range points {
			if point.Get("requests").Int() > 0 {
				row := `{"key":` + key + "," + point.Raw[1:]
				if point.Get("requests_without_cost").Int() > 0 && point.Get("cost").Num == 0 {
					row, _ = sjson.SetRaw(row, "cost", "null") // what is known of it is calls that failed
				}
				rows = append(rows, gjson.Parse(row))
			}
		}
	}
	return rows
}

// Dimension is the API's name of what a user groups by.
func Dimension(name string) string {
	name = FullName(name)
	if key, ok := strings.CutPrefix(name, PropertyPrefix); ok {
		return storage.PropertyPrefix + key
	}
	return name
}
