package llmcommand

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/storage"
)

// percentiles are the flags that add columns of quantiles.
var percentiles = []string{"p50", "p95", "p99"}

// bucketNames are the API's names of the times by which --by groups.
var bucketNames = map[string]storage.BucketWidth{"min": "1m", "hour": "1h", "day": "1d", "week": "7d", "month": "30d"}

func addMetricsFlags(cmd *cobra.Command) {
	cmd.Flags().StringSlice("by", nil, "Show what requests add up to by a field, a time (min, hour, day, week, month: 30 days) or both")
	for _, p := range percentiles {
		cmd.Flags().Bool(p, false, "With --by, show this percentile of latency and time to first token")
	}
}

// metrics shows what requests add up to.
func metrics(cmd *cobra.Command, filter storage.Filter, by []string) error {
	limit, _ := cmd.Flags().GetInt("limit")
	if cmd.Flags().Changed("sort") || cmd.Flags().Changed("columns") {
		return errors.New("--by shows the largest groups first, in columns of its own; leave --sort and --columns out")
	}
	body := map[string]any{"filter": json.RawMessage(storage.AppendJSON(nil, filter)), "bucket": storage.BucketNone, "limit": limit}
	columns := []column{{"requests", "requests", count}, {"errors", "errors", count}, {"in", "prompt_tokens", count}, {"out", "completion_tokens", count}, {"cost", "cost", dollars}}
	for _, p := range percentiles {
		if shown, _ := cmd.Flags().GetBool(p); shown {
			columns = append(columns, column{p, "latency." + p, millis}, column{"ttft " + p, "time_to_first_token." + p, millis})
		}
	}
	utc, _ := cmd.Flags().GetBool("utc")
	if err := groupTotals(body, by, utc); err != nil {
		return fmt.Errorf("--%w", err)
	}
	var groups []column
	for _, name := range by {
		if _, ok := bucketNames[name]; ok {
			groups = append(groups, column{"time", "range_start", moment})
			continue
		}
		groups = append(groups, column{name, "key", plain})
		if name == "cache_miss_reason" {
			columns = append(columns, column{"cache loss", "cache_loss", dollars})
		}
	}
	data, out, err := askAnalytics(cmd, "/v1/metrics/query", body, append(groups, columns...))
	if err != nil {
		return err
	}
	return writeRows(out, totalRows(data, body))
}

// groupTotals has a question of /v1/metrics/query group by a field, a time or both. Days begin at
// midnight here, unless utc.
func groupTotals(body map[string]any, by []string, utc bool) error {
	for _, name := range by {
		if width, ok := bucketNames[name]; ok && body["bucket"] == storage.BucketNone {
			body["bucket"] = width
			if !utc {
				_, offset := time.Now().Zone()
				body["timezoneDifference"] = -offset / 60
			}
		} else if body["groupBy"] == nil && !ok {
			body["groupBy"] = dimensionName(name)
		} else {
			return fmt.Errorf("by: expected one field and one time, not %q besides another", name)
		}
	}
	return nil
}

// totalRows are the rows of what /v1/metrics/query answers to body: groups, or times, or both.
func totalRows(data gjson.Result, body map[string]any) (rows []gjson.Result) {
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
			key = quote(fmt.Sprintf("(%d others)", group.Get("others").Int()))
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

// dimensionName is the API's name of what a user groups by.
func dimensionName(name string) string {
	name = fullName(name)
	if key, ok := strings.CutPrefix(name, propertyPrefix); ok {
		return storage.PropertyPrefix + key
	}
	return name
}

func facetsCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	cmd.Flags().String("format", formatTable, "Format of the values: "+strings.Join(queryFormats, ", "))
	cmd.Flags().StringSlice("fields", []string{"model", "provider", "user", "status", "end_state"}, "Fields whose values to show, as in model,status,property.env")
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = facets
}

func facets(cmd *cobra.Command, args []string) error {
	filter, err := parseFilter(args, time.Now())
	if err != nil {
		return err
	}
	names, _ := cmd.Flags().GetStringSlice("fields")
	fields := make([]string, len(names))
	for i, name := range names {
		fields[i] = dimensionName(name)
	}
	data, out, err := askAnalytics(cmd, "/v1/facets/query", map[string]any{"filter": json.RawMessage(storage.AppendJSON(nil, filter)), "fields": fields},
		[]column{{"field", "field", plain}, {"value", "value", plain}, {"requests", "count", count}})
	if err != nil {
		return err
	}
	var rows []gjson.Result
	for i, facet := range data.Get("fields").Array() {
		field := quote(names[i])
		for _, value := range facet.Get("values").Array() {
			rows = append(rows, gjson.Parse(`{"field":`+field+","+value.Raw[1:]))
		}
		if others := facet.Get("others"); others.Int() > 0 {
			rows = append(rows, gjson.Parse(`{"field":`+field+`,"value":"(others)","count":`+others.Raw+"}"))
		}
	}
	return writeRows(out, rows)
}

// askAnalytics asks an endpoint, and makes the output for what it answers.
func askAnalytics(cmd *cobra.Command, path string, body any, columns []column) (data gjson.Result, out output, err error) {
	if out, err = outputOf(cmd, cmd.OutOrStdout(), false, columns, queryFormats...); err != nil {
		return data, nil, err
	}
	c, err := newClient(cmd)
	if err != nil {
		return data, nil, err
	}
	data, err = c.ask(cmd.Context(), http.MethodPost, path, body)
	return data, out, err
}
