package llmcommand

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/storage"
)

// maxLimit is the largest page of the API.
const maxLimit = 1000

var queryFormats = []string{formatTable, formatJSONL, formatJSON, formatCSV}

func queryCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	addOutputFlags(cmd, queryFormats...)
	cmd.Flags().Int("limit", 20, fmt.Sprintf("Show so many requests at most, up to %d", maxLimit))
	cmd.Flags().StringSlice("sort", nil, "Keys to sort by, as in cost:desc,user:asc; without a direction, the largest first (default time:desc)")
	completeFlag(cmd, "sort", headings(allColumns))
	addMetricsFlags(cmd)
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = query
}

func query(cmd *cobra.Command, args []string) error {
	filter, err := parseFilter(args)
	if err != nil {
		return err
	}
	if by, _ := cmd.Flags().GetStringSlice("by"); len(by) > 0 {
		return metrics(cmd, filter, by)
	}
	keys, _ := cmd.Flags().GetStringSlice("sort")
	sort, err := question.ParseSort(keys)
	if err != nil {
		return err
	}
	limit, _ := cmd.Flags().GetInt("limit")
	if limit < 0 || limit > maxLimit {
		return misused("--limit: expected 0 to %d, not %d; weir export writes any number", maxLimit, limit)
	}
	out, err := newOutput(cmd, cmd.OutOrStdout(), false, queryFormats...)
	if err != nil {
		return err
	}
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	var shown summary
	q := &requestQuery{Filter: storage.AppendJSON(nil, filter), Sort: sort, Limit: limit}
	if !showsContent(cmd) {
		q.IncludeContent = new(false)
	}
	q.search = storage.ContentParts(filter) != 0 && sort == nil && limit > 0
	for record, err := range c.requests(cmd.Context(), q) {
		if err == nil {
			err = out.write(record)
		}
		if err != nil {
			return err
		}
		shown.add(record)
	}
	if err := out.flush(); err != nil {
		return err
	}
	if _, ok := out.(*table); ok {
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "\n%s\n", &shown); err != nil {
			return err
		}
	}
	if shown.requests == 0 && limit > 0 {
		return writeHints(cmd.Context(), cmd.ErrOrStderr(), c, filter)
	}
	return nil
}
