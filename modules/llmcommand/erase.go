package llmcommand

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/storage"
)

var erasureColumns = []column{
	{"erasure", "id", plain}, {"state", "state", plain}, {"requested", "requested_at", moment}, {"by", "requested_by", plain},
	{"searched", "searched", plain}, {"records", "records", count}, {"bytes", "bytes", count}, {"items", "conversation_items", count}, {"erased", "erased", count}, {"done", "done_at", moment},
}

func eraseCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	addFormatFlags(cmd, "erasures", queryFormats...)
	cmd.Flags().Bool("content", false, "Erase the bodies and the inputs of templates; the records stay")
	cmd.Flags().Bool("identity", false, "Erase the content, and what names somebody; the numbers stay")
	cmd.Flags().Bool("record", false, "Erase the records")
	cmd.MarkFlagsMutuallyExclusive(storage.ErasureScopes...)
	cmd.Flags().Bool("yes", false, "Erase, and do not only count")
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = erase
}

// erase counts what a filter matches, and erases it if the user says so. Without a filter it
// erases nothing.
func erase(cmd *cobra.Command, args []string) error {
	i := slices.IndexFunc(storage.ErasureScopes, func(scope string) bool { on, _ := cmd.Flags().GetBool(scope); return on })
	yes, _ := cmd.Flags().GetBool("yes")
	switch {
	case len(args) == 0 && (i >= 0 || yes):
		return errors.New("what is erased? Give a filter, such as user=ada; all matches everything")
	case len(args) == 0:
		return listPages(cmd, "/v1/erasures?limit=200", "after", erasureColumns)
	case i < 0:
		return errors.New("what is erased of the records? --content erases their bodies, --identity also what names somebody, --record all")
	}
	filter, err := question.ParseExplicitFilter(args, time.Now())
	if err != nil {
		return err
	}
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, erasureColumns, queryFormats...)
	if err != nil {
		return err
	}
	answer, err := keys(cmd, http.MethodPost, "/v1/erasures", map[string]any{
		"filter": json.RawMessage(storage.AppendJSON(nil, filter)), "what": storage.ErasureScopes[i], "dry_run": !yes,
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
