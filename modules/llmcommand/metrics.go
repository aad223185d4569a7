package llmcommand

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/storage"
)

// percentiles are the flags that add columns of quantiles.
var percentiles = []string{"p50", "p95", "p99"}

func addMetricsFlags(cmd *cobra.Command) {
	cmd.Flags().StringSlice("by", nil, "Show what requests add up to by a field, a time (min, hour, day, week, month: 30 days) or both")
	by := []string{"min", "hour", "day", "week", "month"}
	for _, dimension := range storage.Dimensions {
		by = append(by, string(dimension))
	}
	completeFlag(cmd, "by", by)
	for _, p := range percentiles {
		cmd.Flags().Bool(p, false, "With --by, show this percentile of latency and time to first token")
	}
}

// metrics shows what requests add up to.
func metrics(cmd *cobra.Command, filter storage.Filter, by []string) error {
	limit, _ := cmd.Flags().GetInt("limit")
	if cmd.Flags().Changed("sort") || cmd.Flags().Changed("columns") {
		return misused("--by shows the largest groups first, in columns of its own; leave --sort and --columns out")
	}
	body := map[string]any{"filter": json.RawMessage(storage.AppendJSON(nil, filter)), "bucket": storage.BucketNone, "limit": limit}
	columns := []column{{"requests", "requests", count}, {"errors", "errors", count}, {"in", "prompt_tokens", count}, {"out", "completion_tokens", count}, {"cost", "cost", dollars}}
	for _, p := range percentiles {
		if shown, _ := cmd.Flags().GetBool(p); shown {
			columns = append(columns, column{p, "latency." + p, millis}, column{"ttft " + p, "time_to_first_token." + p, millis})
		}
	}
	utc, _ := cmd.Flags().GetBool("utc")
	if err := question.GroupTotals(body, by, utc); err != nil {
		return misused("--%w", err)
	}
	var groups []column
	for _, name := range by {
		if _, ok := question.Buckets[name]; ok {
			groups = append(groups, column{"time", "range_start", moment})
			continue
		}
		groups = append(groups, column{name, "key", plain})
		if name == "cache_miss_reason" {
			columns = append(columns, column{"cache loss", "cache_loss", dollars})
		}
		if name == "cached" {
			columns = append(columns, column{"hits", "answer_cache_hits", count}, column{"saved", "saved_cost", dollars})
		}
	}
	data, out, err := askAnalytics(cmd, "/v1/metrics/query", body, append(groups, columns...))
	if err != nil {
		return err
	}
	return writeRows(out, question.TotalRows(data, body))
}

func facetsCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	cmd.Flags().StringP("format", "o", formatTable, "Format of the values: "+strings.Join(queryFormats, ", "))
	completeFlag(cmd, "format", queryFormats)
	cmd.Flags().StringSlice("fields", []string{"model", "provider", "user", "status", "end_state"}, "Fields whose values to show, as in model,status,property.env")
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = facets
}

func facets(cmd *cobra.Command, args []string) error {
	filter, err := parseFilter(args)
	if err != nil {
		return err
	}
	names, _ := cmd.Flags().GetStringSlice("fields")
	fields := make([]string, len(names))
	for i, name := range names {
		fields[i] = question.Dimension(name)
	}
	data, out, err := askAnalytics(cmd, "/v1/facets/query", map[string]any{"filter": json.RawMessage(storage.AppendJSON(nil, filter)), "fields": fields},
		[]column{{"field", "field", plain}, {"value", "value", plain}, {"requests", "count", count}})
	if err != nil {
		return err
	}
	var rows []gjson.Result
	for i, facet := range data.Get("fields").Array() {
		field := question.Quote(names[i])
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
