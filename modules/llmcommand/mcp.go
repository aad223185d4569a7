package llmcommand

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
)

func mcpCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	cmd.Args = cobra.NoArgs
	cmd.RunE = serveMCP
}

// serveMCP is an MCP server on standard input and output, as agents start them.
func serveMCP(cmd *cobra.Command, _ []string) error {
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	in, ok := cmd.InOrStdin().(io.ReadCloser)
	if !ok {
		in = io.NopCloser(cmd.InOrStdin())
	}
	err = newMCPServer(c).Run(cmd.Context(), &mcp.IOTransport{Reader: in, Writer: nopWriteCloser{cmd.OutOrStdout()}})
	if errors.Is(err, io.EOF) { // the agent has ended
		return nil
	}
	return err
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

// mcpFilterHelp tells a model how to write a filter.
const mcpFilterHelp = `Terms that all must hold, with blanks between them: a field, an operator (= != ~ !~ >= > <= <) and a value, ` +
	`such as: since=7d model=gpt-5 user=ada status>=400 cost>0.5 session=review-7 property.team=search. ` +
	`since and until take an age such as 24h or 7d, a date or a time. A value with blanks is in double quotes. ` +
	`"or" and parentheses join terms. Empty: all requests.`

type spendInput struct {
	Filter string   `json:"filter,omitempty" jsonschema:"which requests to add up"`
	By     []string `json:"by,omitempty" jsonschema:"a field, a time (min, hour, day, week or month), or one of each"`
	Limit  int      `json:"limit,omitempty" jsonschema:"groups at most, 20 if none is given"`
}

type listInput struct {
	Filter string `json:"filter,omitempty" jsonschema:"which requests count"`
	Sort   string `json:"sort,omitempty" jsonschema:"a field, with :asc or :desc"`
	Limit  int    `json:"limit,omitempty" jsonschema:"at most so many, 20 if none is given"`
}

type requestInput struct {
	ID string `json:"id" jsonschema:"the request_id"`
}

// The bounds of an answer, which takes room in a model's context.
const (
	defaultMCPRows = 20
	maxMCPRows     = 200
	maxMCPBody     = 20 << 10 // bytes of one body
)

// newMCPServer has the tools that answer questions about recorded requests, by the key of c and
// with its scopes. None changes anything.
func newMCPServer(c *client) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "weir", Title: "Weir", Version: llmapp.Version()}, &mcp.ServerOptions{
		Instructions: "Answers questions about the LLM calls that Weir has recorded: cost, tokens, errors, sessions, contents. Costs are US dollars; null is unknown.",
	})
	addMCPTool(s, "spend", "What requests add up to: requests, errors, tokens and cost, in all or by group. "+
		"Useful groups: model, provider, user, session, project, key, property.<name>, day; "+
		"error_message tells why calls fail; cache_miss_reason tells why prompts were not read from the provider's cache, and cache_loss what that cost. "+
		"filter: "+mcpFilterHelp, c.spend)
	addMCPTool(s, "sessions", "Sessions, such as runs of coding agents, with their requests, tokens and total_cost, the dearest first. "+
		"sort: a field of the answer. filter: "+mcpFilterHelp, c.dearSessions)
	addMCPTool(s, "requests", "Requests without their contents, the newest first: status, model, tokens, cost, latency, error_message, user, session. "+
		"sort: time, cost, latency, tokens or another field. filter: "+mcpFilterHelp, c.listRequests)
	addMCPTool(s, "request", "One request with all its fields and both contents, which are cut when they are long.", c.oneRequest)
	addMCPTool(s, "budgets", "Whose key this is, and what is left of its budgets.", c.ownBudgets)
	return s
}

// addMCPTool adds a tool that reads, and answers JSON.
func addMCPTool[In any](s *mcp.Server, name, description string, do func(context.Context, In) (string, error)) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			text, err := do(ctx, in)
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
}

// mcpQuestion is what a query begins with: a filter as the API takes it, and a limit.
func mcpQuestion(filter string, limit int) (map[string]any, error) {
	parsed, err := parseFilter([]string{cmp.Or(strings.TrimSpace(filter), "all")}, time.Now())
	switch {
	case err != nil:
		return nil, err
	case limit < 0 || limit > maxMCPRows:
		return nil, fmt.Errorf("limit: expected 1 to %d, not %d", maxMCPRows, limit)
	}
	return map[string]any{"filter": json.RawMessage(storage.AppendJSON(nil, parsed)), "limit": cmp.Or(limit, defaultMCPRows)}, nil
}

func (c *client) spend(ctx context.Context, in spendInput) (string, error) {
	body, err := mcpQuestion(in.Filter, in.Limit)
	if err != nil {
		return "", err
	}
	body["bucket"] = storage.BucketNone
	if err := groupTotals(body, in.By, false); err != nil {
		return "", err
	}
	data, err := c.ask(ctx, http.MethodPost, "/v1/metrics/query", body)
	if err != nil {
		return "", err
	}
	return jsonOf(totalRows(data, body)), nil
}

func (c *client) dearSessions(ctx context.Context, in listInput) (string, error) {
	body, err := mcpQuestion(in.Filter, in.Limit)
	if err != nil {
		return "", err
	}
	name, direction, err := cutDirection(cmp.Or(in.Sort, "total_cost"))
	if err != nil {
		return "", err
	}
	body["derived"], body["sort"] = true, map[string]string{name: direction}
	data, err := c.ask(ctx, http.MethodPost, "/v1/session/query", body)
	return jsonOf(data.Array()), err
}

func (c *client) listRequests(ctx context.Context, in listInput) (string, error) {
	body, err := mcpQuestion(in.Filter, in.Limit)
	if err != nil {
		return "", err
	}
	sort, err := parseSort([]string{cmp.Or(in.Sort, "time")})
	if err != nil {
		return "", err
	}
	body["sort"] = sort
	data, err := c.ask(ctx, http.MethodPost, "/v1/request/query-clickhouse", body)
	if err != nil {
		return "", err
	}
	return jsonOf(data.Array()), nil
}

func (c *client) oneRequest(ctx context.Context, in requestInput) (string, error) {
	data, err := c.ask(ctx, http.MethodGet, "/v1/request/"+url.PathEscape(in.ID), nil)
	if err != nil {
		return "", err
	}
	text := withoutNulls(data)
	for _, body := range []string{"request_body", "response_body"} {
		if raw := gjson.Get(text, body).Raw; len(raw) > maxMCPBody {
			cut := strings.ToValidUTF8(raw[:maxMCPBody], "")
			if text, err = sjson.Set(text, body, fmt.Sprintf("%s… (%d of %d bytes)", cut, len(cut), len(raw))); err != nil {
				return "", err
			}
		}
	}
	return text, nil
}

func (c *client) ownBudgets(ctx context.Context, _ struct{}) (string, error) {
	data, err := c.ask(ctx, http.MethodGet, "/v1/key", nil)
	return data.Raw, err
}

// jsonOf is an array of objects without their nulls, which take room in a context.
func jsonOf(rows []gjson.Result) string {
	texts := make([]string, len(rows))
	for i, row := range rows {
		texts[i] = withoutNulls(row)
	}
	return "[" + strings.Join(texts, ",") + "]"
}

func withoutNulls(object gjson.Result) string {
	text := []byte("{")
	object.ForEach(func(name, value gjson.Result) bool {
		if value.Type != gjson.Null {
			if len(text) > 1 {
				text = append(text, ',')
			}
			text = append(append(append(text, name.Raw...), ':'), value.Raw...)
		}
		return true
	})
	return string(append(text, '}'))
}
