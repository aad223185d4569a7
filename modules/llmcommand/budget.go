package llmcommand

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/storage"
)

var budgetColumns = []column{
	{"budget", "name", plain}, {"for", "for", plain}, {"window", "window", plain}, {"per", "per", plain}, {"value", "whose", plain}, {"counts", "quantity", plain}, {"limit", "limit", amount},
	{"spent", "spent", amount}, {"reserved", "reserved", amount}, {"remaining", "remaining", amount}, {"would refuse", "would_refuse.calls", count}, {"ends", "ends_at", moment},
}

func budgetCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	addFormatFlags(cmd, "accounts", queryFormats...)
	cmd.Args = cobra.NoArgs
	set := keyAction("set <budget> <limit>", "Creates a budget or a limit, or replaces it", cobra.ExactArgs(2), setBudget)
	addBudgetFlags(set)
	f := set.Flags()
	f.String("since", "", "The day or time since which records count in a new budget, such as 2026-11-01 (default: it begins at 0)")
	f.StringSlice("alert", nil, "Report at these percentages of the limit; 80,95=small also sends calls to the models of the alias small from 95 % on")
	f.Bool("trust", false, "Count by what calls say of themselves, which their keys need not vouch for")
	f.String("wait", "", "How long a call waits for what it needs, such as 5s (default: it is refused at once)")
	f.Bool("cut", false, "Let a stream begin that may not fit, and end it at the limit")
	f.String("on-unpriced", "refuse", "What happens to a call whose price is unknown: refuse, or pass, which counts nothing")
	f.Bool("observe", false, "Count calls and report which of them would be refused, and refuse none")
	cmd.AddCommand(set, keyAction("delete <budget>", "Deletes a budget or a limit", cobra.ExactArgs(1), deleteBudget), tryCommand())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		out, err := outputOf(cmd, cmd.OutOrStdout(), false, budgetColumns, queryFormats...)
		if err != nil {
			return err
		}
		err = eachItem(cmd, "/v1/budgets?limit=200&values=200", "after", func(budget gjson.Result) error {
			budget = withCalls(budget)
			if budget.Get("accounts.#").Int() == 0 {
				return out.write(budget)
			}
			for _, account := range budget.Get("accounts").Array() { // a row has the fields of both
				row := merge(budget, account)
				if err := out.write(merge(row, gjson.Parse(`{"whose":`+whose(row)+"}"))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return out.flush()
	}
}

// addBudgetFlags adds what says which calls a budget counts, and how.
func addBudgetFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.String("quantity", "usd", "What counts: "+strings.Join(money.Quantities, ", "))
	f.String("window", "", strings.Join(money.BudgetWindows, ", ")+", or a duration such as 1m (default: month for usd, else 1m)")
	f.String("timezone", "", "The time zone whose midnight begins a window, such as Europe/Berlin (default: UTC)")
	f.String("per", "", "Give each user, key, project, … its own limit (default: all calls share the limit)")
	f.String("project", "", "The project whose calls count (default: all calls)")
	f.String("for", "", "The calls that count, as a filter such as 'model~opus' (default: all calls)")
}

// whose is the value of an account in words: calls without a value share one.
func whose(row gjson.Result) string {
	value := row.Get("value")
	if value.Type == gjson.String && value.Str == "" {
		return question.Quote("(without a " + row.Get("per").Str + ")")
	}
	return value.Raw
}

// withCalls returns a budget or a rule with the words for its filter in the field "for".
func withCalls(rule gjson.Result) gjson.Result {
	calls, _ := json.Marshal(callsOf(rule.Get("filter"))) // a string
	return merge(rule, gjson.Parse(`{"for":`+string(calls)+"}"))
}

// merge returns an object with the fields of two, which are not empty.
func merge(a, b gjson.Result) gjson.Result {
	return gjson.Parse(strings.TrimSuffix(a.Raw, "}") + "," + strings.TrimPrefix(b.Raw, "{"))
}

// callsOf says which calls a filter of the API takes: project=search, or its JSON if it has no
// such words.
func callsOf(filter gjson.Result) string {
	if !filter.IsObject() {
		return "all"
	}
	if operator := filter.Get("operator"); operator.Exists() {
		return callsOf(filter.Get("left")) + " " + operator.Str + " " + callsOf(filter.Get("right"))
	}
	field, operation := member(filter.Get("request_response_rmt"))
	if field == "properties" {
		field, operation = member(operation)
	}
	if operator, value := member(operation); operator == "equals" {
		return field + "=" + value.String()
	}
	return filter.Raw
}

// member returns the first member of an object.
func member(object gjson.Result) (name string, value gjson.Result) {
	object.ForEach(func(n, v gjson.Result) bool {
		name, value = n.Str, v
		return false
	})
	return name, value
}

// budgetSettings returns what addBudgetFlags has said of a budget.
func budgetSettings(cmd *cobra.Command, name, limit string) (map[string]any, error) {
	body := map[string]any{"name": name, "limit": limit}
	for _, flag := range []string{"quantity", "window", "timezone", "per"} {
		if value, _ := cmd.Flags().GetString(flag); value != "" {
			body[flag] = value
		}
	}
	project, _ := cmd.Flags().GetString("project")
	if project == "" {
		return body, addCalls(cmd, body)
	}
	if calls, _ := cmd.Flags().GetString("for"); calls != "" {
		return nil, misused("name the calls by --project or by --for, as in --for 'project=search model~opus'")
	}
	body["filter"] = json.RawMessage(storage.AppendJSON(nil, &storage.Leaf{Field: question.Field("project"), Op: storage.Equals, Text: project}))
	return body, nil
}

// addCalls adds the filter of the flag for, if the flag is given.
func addCalls(cmd *cobra.Command, body map[string]any) error {
	calls, _ := cmd.Flags().GetString("for")
	if calls == "" {
		return nil
	}
	filter, err := parseFilter([]string{calls})
	if err != nil {
		return misused("--for: %w", err)
	}
	body["filter"] = json.RawMessage(storage.AppendJSON(nil, filter))
	return nil
}

func setBudget(cmd *cobra.Command, args []string) error {
	body, err := budgetSettings(cmd, args[0], args[1])
	if err != nil {
		return err
	}
	for _, flag := range []string{"since", "wait", "on-unpriced"} {
		if cmd.Flags().Changed(flag) {
			body[strings.ReplaceAll(flag, "-", "_")], _ = cmd.Flags().GetString(flag)
		}
	}
	var stages []map[string]any
	alerts, _ := cmd.Flags().GetStringSlice("alert")
	for _, alert := range alerts {
		text, alias, diverts := strings.Cut(alert, "=")
		at, err := strconv.Atoi(text)
		if err != nil {
			return misused("--alert: expected percentages of the limit such as 80, or 95=small, not %q", alert)
		}
		stage := map[string]any{"at": at}
		if diverts {
			stage["use"] = alias
		}
		stages = append(stages, stage)
	}
	if stages != nil {
		body["stages"] = stages
	}
	for _, flag := range []string{"trust", "cut", "observe"} {
		if set, _ := cmd.Flags().GetBool(flag); set {
			body[flag] = true
		}
	}
	return change(cmd, http.MethodPost, "/v1/budgets", body, args[0], "set")
}

func deleteBudget(cmd *cobra.Command, args []string) error {
	return change(cmd, http.MethodDelete, "/v1/budgets/"+url.PathEscape(args[0]), nil, args[0], "deleted")
}
