package llmcommand

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/storage"
)

var erasureColumns = []column{
	{"erasure", "id", plain}, {"state", "state", plain}, {"requested", "requested_at", moment}, {"by", "requested_by", plain},
	{"searched", "searched", plain}, {"records", "records", count}, {"bytes", "bytes", count}, {"erased", "erased", count}, {"done", "done_at", moment},
}

func eraseCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	addFormatFlags(cmd, "erasures", queryFormats...)
	cmd.Flags().Bool("content", false, "Erase the bodies and the inputs of templates; the records stay")
	cmd.Flags().Bool("yes", false, "Erase, and do not only count")
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = erase
}

// erase counts what a filter matches, and erases it if the user says so. Without a filter it
// erases nothing.
func erase(cmd *cobra.Command, args []string) error {
	content, _ := cmd.Flags().GetBool("content")
	yes, _ := cmd.Flags().GetBool("yes")
	switch {
	case len(args) == 0 && (content || yes):
		return errors.New("what is erased? Give a filter, such as user=ada; all matches everything")
	case len(args) == 0:
		return listPages(cmd, "/v1/erasures?limit=200", "after", erasureColumns)
	case !content:
		return errors.New("what is erased of the records? --content erases their bodies")
	}
	filter, err := question.ParseFilter(args, time.Now())
	if err != nil {
		return err
	}
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, erasureColumns, queryFormats...)
	if err != nil {
		return err
	}
	answer, err := keys(cmd, http.MethodPost, "/v1/erasures", map[string]any{
		"filter": json.RawMessage(storage.AppendJSON(nil, filter)), "what": "content", "dry_run": !yes,
	})
	if err != nil {
		return err
	}
	if err := writeRows(out, []gjson.Result{answer}); err != nil || yes {
		return err
	}
	_, err = fmt.Fprintln(cmd.ErrOrStderr(), "Nothing is erased. --yes erases this.")
	return err
}
