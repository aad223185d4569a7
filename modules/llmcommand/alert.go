package llmcommand

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/alert"
)

var (
	alertColumns = []column{
		{"alert", "id", plain}, {"rule", "rule", plain}, {"of", "subject", plain}, {"condition", "condition", plain}, {"value", "value", plain},
		{"since", "fired_at", moment}, {"until", "resolved_at", moment},
	}
	deliveryColumns = append(alertColumns[:3:3], column{"state", "state", plain}, column{"channel", "channel", plain}, column{"attempts", "attempts", plain},
		column{"delivered", "delivered_at", moment}, column{"next", "next_at", moment}, column{"error", "error", plain})
	alertRuleColumns = []column{
		{"rule", "name", plain}, {"condition", "condition", plain}, {"for", "for", plain}, {"per", "per", plain}, {"to", "to", plain},
	}
)

func alertCommand(cmd *cobra.Command) {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	list := keyAction("list", "Shows the alerts that fire", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		if rules, _ := cmd.Flags().GetBool("rules"); rules {
			return listAlertRules(cmd)
		}
		return listPages(cmd, "/v1/alerts?limit=200&state=firing", "after", alertColumns)
	})
	list.Flags().Bool("rules", false, "Show the rules instead")
	history := keyAction("history", "Shows all messages about alerts and what became of them, the newest first", cobra.NoArgs, alertHistory)
	for _, c := range []*cobra.Command{list, history} {
		addFormatFlags(c, "alerts", queryFormats...)
	}
	set := keyAction("set <rule> <condition>", "Creates a rule, or replaces it, as in weir alert set dear 'cost > 100' --over 1d --to ops", cobra.ExactArgs(2), setAlertRule)
	f := set.Flags()
	f.String("over", "", "The time that the total is of, such as 15m, 1h or 1d; totals of budgets and keys have none")
	f.Bool("than-last-week", false, "Compare with the same time a week before: the condition says how many times as much")
	f.String("for", "", "The calls that count, as a filter such as 'model~opus' (default: all calls)")
	f.String("per", "", "Compare each user, key, project, … apart (default: all calls together)")
	f.StringSlice("to", nil, "The channels that are told")
	cmd.AddCommand(list, history, set,
		keyAction("delete <rule>", "Deletes a rule; its alerts are resolved", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			return change(cmd, http.MethodDelete, alertRulesPath+"/"+url.PathEscape(args[0]), nil, args[0], "deleted")
		}),
		keyAction("test <channel>", "Sends a message to a channel, and tells what became of it", cobra.ExactArgs(1), testChannel),
		keyAction("redeliver <alert>", "Sends the messages about an alert again", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			return change(cmd, http.MethodPost, "/v1/alerts/"+url.PathEscape(args[0])+"/redeliver", nil, args[0], "sent again")
		}))
}

const alertRulesPath = "/v1/alerts/rules"

// alertCondition matches a total, an operator and a number, as in `cost > 100`.
var alertCondition = regexp.MustCompile(`^\s*([\w.]+)\s*(` + strings.Join(alert.Operators, "|") + `)\s*(-?[0-9]+(?:\.[0-9]+)?)\s*$`)

func setAlertRule(cmd *cobra.Command, args []string) error {
	condition := alertCondition.FindStringSubmatch(args[1])
	if condition == nil {
		return misused("expected a condition such as 'cost > 100' or 'latency.p95 >= 2000', not %q", args[1])
	}
	to, _ := cmd.Flags().GetStringSlice("to")
	if len(to) == 0 {
		return misused("name the channels that are told, as in --to ops")
	}
	body := map[string]any{"name": args[0], "total": condition[1], "operator": condition[2], "threshold": json.Number(condition[3]), "to": to}
	for _, flag := range []string{"over", "per"} {
		if value, _ := cmd.Flags().GetString(flag); value != "" {
			body[flag] = value
		}
	}
	if than, _ := cmd.Flags().GetBool("than-last-week"); than {
		body["than"] = "last_week"
	}
	if err := addCalls(cmd, body); err != nil {
		return err
	}
	return change(cmd, http.MethodPost, alertRulesPath, body, args[0], "set")
}

func listAlertRules(cmd *cobra.Command) error {
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, alertRuleColumns, queryFormats...)
	if err != nil {
		return err
	}
	data, err := keys(cmd, http.MethodGet, alertRulesPath, nil)
	if err != nil {
		return err
	}
	var rows []gjson.Result
	for _, rule := range data.Get("items").Array() {
		rows = append(rows, withCalls(rule))
	}
	return writeRows(out, rows)
}

// alertHistory writes a row for each message.
func alertHistory(cmd *cobra.Command, _ []string) error {
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, deliveryColumns, queryFormats...)
	if err != nil {
		return err
	}
	err = eachItem(cmd, "/v1/alerts?limit=200", "after", func(item gjson.Result) error {
		for _, d := range item.Get("deliveries").Array() { // a row has the fields of both; the id is the alert's
			if err := out.write(merge(item, d)); err != nil {
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

func testChannel(cmd *cobra.Command, args []string) error {
	d, err := keys(cmd, http.MethodPost, "/v1/alerts/channels/"+url.PathEscape(args[0])+"/test", nil)
	if err != nil {
		return err
	}
	if failure := d.Get("error").Str; failure != "" {
		return errors.New("channel " + args[0] + " did not take the message: " + failure)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has taken message %s\n", args[0], d.Get("id").Str)
	return err
}
