package llmcommand

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/storage"
)

var holdColumns = []column{
	{"hold", "id", plain}, {"placed", "placed_at", moment}, {"by", "placed_by", plain}, {"reason", "reason", plain}, {"filter", "filter", plain},
}

func holdCommand(cmd *cobra.Command) {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	place := keyAction("place <filter>...", "Keeps the requests that match a filter, now or later, from retention and from weir erase", cobra.MinimumNArgs(1), placeHold)
	place.Flags().String("reason", "", "Why they are kept, such as the number of a case")
	list := keyAction("list", "Shows the holds in force", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		return listPages(cmd, "/v1/holds?limit=200", "after", holdColumns)
	})
	for _, c := range []*cobra.Command{place, list} {
		addFormatFlags(c, "holds", queryFormats...)
	}
	cmd.AddCommand(place, list,
		keyAction("lift <hold>", "Ends a hold: retention and erasures go on", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			return change(cmd, http.MethodDelete, "/v1/holds/"+url.PathEscape(args[0]), nil, args[0], "lifted")
		}))
}

func placeHold(cmd *cobra.Command, args []string) error {
	reason, _ := cmd.Flags().GetString("reason")
	if reason == "" {
		return errors.New("why are they kept? Give a --reason, such as the number of a case")
	}
	filter, err := question.ParseExplicitFilter(args, time.Now())
	if err != nil {
		return err
	}
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, holdColumns, queryFormats...)
	if err != nil {
		return err
	}
	hold, err := keys(cmd, http.MethodPost, "/v1/holds", map[string]any{"filter": json.RawMessage(storage.AppendJSON(nil, filter)), "reason": reason})
	if err != nil {
		return err
	}
	return writeRows(out, []gjson.Result{hold})
}
