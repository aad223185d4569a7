package llmcommand

import (
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/question"
)

var (
	trialColumns = []column{
		{"calls", "calls", count}, {"refused", "refused", count}, {"callers", "callers", count}, {"at the limit", "values", count},
		{"first refused", "first_refused_at", moment}, {"counts", "quantity", plain}, {"admitted", "admitted", amount}, {"refused amount", "spared", amount},
		{"cost of the refused", "saved_cost", dollars}, {"without a price", "unpriced", count},
	}
	refusedColumns = []column{
		{"time", "created_at", moment}, {"request", "request_id", plain}, {"user", "user_id", plain}, {"value", "value", plain},
		{"amount", "amount", amount}, {"counted before", "counted", amount}, {"without a price", "unpriced", plain},
	}
)

func tryCommand() *cobra.Command {
	cmd := keyAction("try <limit>", "Shows what a budget would have refused of recorded calls", cobra.ExactArgs(1), tryBudget)
	cmd.Long = cmd.Short + ", and makes no budget"
	addBudgetFlags(cmd)
	addFormatFlags(cmd, "calls", queryFormats...)
	f := cmd.Flags()
	f.String("since", "30d", "The time from which recorded calls count, or how long ago that is")
	f.Int("calls", 0, "List so many of the calls that would have been refused, the oldest first, at most 10000 (default: their number alone)")
	return cmd
}

func tryBudget(cmd *cobra.Command, args []string) error {
	budget, err := budgetSettings(cmd, "trial", args[0])
	if err != nil {
		return err
	}
	budget["trust"] = true // records have no other names
	since, _ := cmd.Flags().GetString("since")
	from, err := question.ParseMoment(since, time.Now())
	if err != nil {
		return misused("--since: %w", err)
	}
	listed, _ := cmd.Flags().GetInt("calls")
	columns := trialColumns
	if listed > 0 {
		columns = refusedColumns
	}
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, columns, queryFormats...)
	if err != nil {
		return err
	}
	answer, err := keys(cmd, http.MethodPost, "/v1/budgets/try", map[string]any{"budget": budget, "from": from, "limit": listed})
	if err != nil {
		return err
	}
	rows := []gjson.Result{answer}
	if listed > 0 {
		rows = nil
		for _, call := range answer.Get("refused_calls").Array() {
			rows = append(rows, merge(call, gjson.Parse(`{"quantity":`+answer.Get("quantity").Raw+"}")))
		}
	}
	return writeRows(out, rows)
}
