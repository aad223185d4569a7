package llmcommand

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
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
	cmd.AddCommand(list, history,
		keyAction("test <channel>", "Sends a message to a channel, and tells what became of it", cobra.ExactArgs(1), testChannel),
		keyAction("redeliver <alert>", "Sends the messages about an alert again", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			return change(cmd, http.MethodPost, "/v1/alerts/"+url.PathEscape(args[0])+"/redeliver", nil, args[0], "sent again")
		}))
}

func listAlertRules(cmd *cobra.Command) error {
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, alertRuleColumns, queryFormats...)
	if err != nil {
		return err
	}
	data, err := keys(cmd, http.MethodGet, "/v1/alerts/rules", nil)
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
	err = eachItem(cmd, "/v1/alerts?limit=200", "after", func(alert gjson.Result) error {
		for _, d := range alert.Get("deliveries").Array() { // a row has the fields of both; the id is the alert's
			if err := out.write(merge(alert, d)); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, out.flush())
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
