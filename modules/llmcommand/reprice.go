package llmcommand

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/storage"
)

var repricingColumns = []column{
	{"provider", "provider", plain}, {"model", "model", plain}, {"changed", "changed", count}, {"unpriced", "unpriced", count},
	{"before", "cost_before", dollars}, {"after", "cost_after", dollars},
}

func repriceCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	addFormatFlags(cmd, "models", queryFormats...)
	cmd.Flags().Bool("yes", false, "Change the costs, and do not only show what would change")
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = reprice
}

func reprice(cmd *cobra.Command, args []string) error {
	yes, _ := cmd.Flags().GetBool("yes")
	filter, err := question.ParseExplicitFilter(args, time.Now())
	if err != nil {
		return err
	}
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, repricingColumns, queryFormats...)
	if err != nil {
		return err
	}
	answer, err := keys(cmd, http.MethodPost, "/v1/repricings", map[string]any{
		"filter": json.RawMessage(storage.AppendJSON(nil, filter)), "dry_run": !yes,
	})
	if err != nil {
		return err
	}
	if err := writeRows(out, answer.Get("models").Array()); err != nil {
		return err
	}
	changed := answer.Get("changed").Int()
	verb := "change"
	if yes {
		verb = "have changed"
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Of %d requests, the costs of %d %s, and %d stay because nobody can say what they cost. Prices: %s.\n",
		answer.Get("records").Int(), changed, verb, answer.Get("unknown").Int(), printable(answer.Get("price_version").Str))
	if changed > 0 && !yes {
		fmt.Fprintln(cmd.ErrOrStderr(), "Nothing is changed. --yes changes this.")
	}
	return nil
}
