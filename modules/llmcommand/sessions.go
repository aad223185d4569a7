package llmcommand

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/storage"
)

func sessionsCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	addFormatFlags(cmd, "sessions", queryFormats...)
	cmd.Flags().Int("limit", 20, fmt.Sprintf("Show so many sessions at most, up to %d", maxLimit))
	cmd.Flags().String("sort", "created_at", "Field of sessions to sort by, the largest first, as in total_cost")
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = sessions
}

func sessions(cmd *cobra.Command, args []string) error {
	filter, err := parseFilter(args, time.Now())
	if err != nil {
		return err
	}
	limit, _ := cmd.Flags().GetInt("limit")
	sort, _ := cmd.Flags().GetString("sort")
	if _, err := storage.ParseSessionSort(fmt.Appendf(nil, "{%q:%q}", sort, "desc")); err != nil {
		return fmt.Errorf("--sort: %w", err)
	}
	body := map[string]any{"filter": json.RawMessage(storage.AppendJSON(nil, filter)), "derived": true, "limit": limit, "sort": map[string]string{sort: "desc"}}
	data, out, err := askAnalytics(cmd, "/v1/session/query", body, []column{
		{"began", "created_at", moment}, {"last request", "latest_request_created_at", moment}, {"session", "session_id", plain},
		{"name", "session_name", plain}, {"derived", "is_derived", plain}, {"requests", "total_requests", count},
		{"in", "prompt_tokens", count}, {"out", "completion_tokens", count}, {"cost", "total_cost", dollars},
	})
	if err != nil {
		return err
	}
	for _, session := range data.Array() {
		if err := out.write(session); err != nil {
			return err
		}
	}
	return out.flush()
}
