package llmcommand

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/storage"
)

func sessionsCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	addFormatFlags(cmd, "sessions", queryFormats...)
	cmd.Flags().Int("limit", 20, fmt.Sprintf("Show so many sessions at most, up to %d", maxLimit))
	cmd.Flags().String("sort", "created_at", "Field of sessions to sort by, as in total_cost:asc; without a direction, the largest first")
	cmd.Flags().String("tree", "", "Show the parts of one session, by its id or that of the first request of a tree")
	cmd.Flags().String("by", string(storage.ByConversation), "With --tree, what a part is: conversation or path")
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = sessions
}

func sessions(cmd *cobra.Command, args []string) error {
	path, columns, question := "/v1/session/query", sessionColumns, sessionQuestion
	if cmd.Flags().Changed("tree") {
		path, columns, question = "/v1/session/tree/query", nodeColumns, treeQuestion
	}
	body, err := question(cmd, args)
	if err != nil {
		return err
	}
	data, out, err := askAnalytics(cmd, path, body, columns)
	if err != nil {
		return err
	}
	return writeRows(out, data.Array())
}

var sessionColumns = []column{
	{"began", "created_at", moment}, {"last request", "latest_request_created_at", moment}, {"session", "session_id", plain},
	{"name", "session_name", plain}, {"derived", "is_derived", plain}, {"requests", "total_requests", count},
	{"in", "prompt_tokens", count}, {"out", "completion_tokens", count}, {"cost", "total_cost", dollars},
}

func sessionQuestion(cmd *cobra.Command, args []string) (map[string]any, error) {
	if cmd.Flags().Changed("by") {
		return nil, misused("--by says what the parts of a session are; name the session with --tree")
	}
	filter, err := parseFilter(args)
	if err != nil {
		return nil, err
	}
	limit, _ := cmd.Flags().GetInt("limit")
	key, _ := cmd.Flags().GetString("sort")
	name, direction, err := question.CutDirection(key)
	if err != nil {
		return nil, err
	}
	sort := json.RawMessage("{" + question.Quote(name) + ":" + question.Quote(direction) + "}")
	if _, err := storage.ParseSessionSort(sort); err != nil {
		return nil, misused("--sort: %w", err)
	}
	return map[string]any{"filter": json.RawMessage(storage.AppendJSON(nil, filter)), "derived": true, "limit": limit, "sort": sort}, nil
}

var nodeColumns = []column{
	{"part", "id", nested}, {"began", "created_at", moment},
	{"requests", "own.requests", count}, {"tokens", "own.total_tokens", count}, {"cost", "own.cost", dollars},
	{"all requests", "total.requests", count}, {"all tokens", "total.total_tokens", count}, {"all cost", "total.cost", dollars},
}

func treeQuestion(cmd *cobra.Command, args []string) (map[string]any, error) {
	if len(args) > 0 || cmd.Flags().Changed("sort") || cmd.Flags().Changed("limit") {
		return nil, misused("--tree shows a whole session; leave filters, --sort and --limit out")
	}
	id, _ := cmd.Flags().GetString("tree")
	by, _ := cmd.Flags().GetString("by")
	return map[string]any{"sessionId": id, "by": by}, nil
}
