package llmmcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
)

// filterHelp tells a model how to write a filter.
const filterHelp = `Terms that all must hold, with blanks between them: a field, an operator (= != ~ !~ >= > <= <) and a value, ` +
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
	defaultRows = 20
	maxRows     = 200
	maxContent  = 20 << 10 // bytes of one body
)

// Ask sends a request to the APIs of llm_query and llm_control, with somebody's key, and returns the
// data of the answer.
type Ask func(ctx context.Context, method, path string, body any) (gjson.Result, error)

// NewServer has the tools that answer questions about recorded requests, with the scopes of the key
// that ask has. None changes anything.
func NewServer(ask Ask) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "weir", Title: "Weir", Version: llmapp.Version()}, &mcp.ServerOptions{
		Instructions: "Answers questions about the LLM calls that Weir has recorded: cost, tokens, errors, sessions, contents. Costs are US dollars; null is unknown.",
	})
	addTool(s, "spend", "What requests add up to: requests, errors, tokens and cost, in all or by group. "+
		"Useful groups: model, provider, user, session, project, key, property.<name>, day; "+
		"error_message tells why calls fail; cache_miss_reason tells why prompts were not read from the provider's cache, and cache_loss what that cost. "+
		"filter: "+filterHelp, ask.spend)
	addTool(s, "sessions", "Sessions, such as runs of coding agents, with their requests, tokens and total_cost, the dearest first. "+
		"sort: a field of the answer. filter: "+filterHelp, ask.dearSessions)
	addTool(s, "requests", "Requests without their contents, the newest first: status, model, tokens, cost, latency, error_message, user, session. "+
		"sort: time, cost, latency, tokens or another field. filter: "+filterHelp, ask.listRequests)
	addTool(s, "request", "One request with all its fields and both contents, which are cut when they are long.", ask.oneRequest)
	addTool(s, "budgets", "Whose key this is, and what is left of its budgets.", ask.ownBudgets)
	return s
}

// addTool adds a tool that reads, and answers JSON.
func addTool[In any](s *mcp.Server, name, description string, do func(context.Context, In) (string, error)) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			text, err := do(ctx, in)
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
}

// newQuestion is what a query begins with: a filter as the API takes it, and a limit.
func newQuestion(filter string, limit int) (map[string]any, error) {
	parsed, err := question.ParseFilter([]string{cmp.Or(strings.TrimSpace(filter), "all")}, time.Now())
	switch {
	case err != nil:
		return nil, err
	case limit < 0 || limit > maxRows:
		return nil, fmt.Errorf("limit: expected 1 to %d, not %d", maxRows, limit)
	}
	return map[string]any{"filter": json.RawMessage(storage.AppendJSON(nil, parsed)), "limit": cmp.Or(limit, defaultRows)}, nil
}

func (ask Ask) spend(ctx context.Context, in spendInput) (string, error) {
	body, err := newQuestion(in.Filter, in.Limit)
	if err != nil {
		return "", err
	}
	body["bucket"] = storage.BucketNone
	if err := question.GroupTotals(body, in.By, false); err != nil {
		return "", err
	}
	data, err := ask(ctx, http.MethodPost, "/v1/metrics/query", body)
	if err != nil {
		return "", err
	}
	return jsonOf(question.TotalRows(data, body)), nil
}

func (ask Ask) dearSessions(ctx context.Context, in listInput) (string, error) {
	body, err := newQuestion(in.Filter, in.Limit)
	if err != nil {
		return "", err
	}
	name, direction, err := question.CutDirection(cmp.Or(in.Sort, "total_cost"))
	if err != nil {
		return "", err
	}
	body["derived"], body["sort"] = true, map[string]string{name: direction}
	data, err := ask(ctx, http.MethodPost, "/v1/session/query", body)
	return jsonOf(data.Array()), err
}

func (ask Ask) listRequests(ctx context.Context, in listInput) (string, error) {
	body, err := newQuestion(in.Filter, in.Limit)
	if err != nil {
		return "", err
	}
	sort, err := question.ParseSort([]string{cmp.Or(in.Sort, "time")})
	if err != nil {
		return "", err
	}
	body["sort"], body["includeContent"] = sort, false
	data, err := ask(ctx, http.MethodPost, "/v1/request/query-clickhouse", body)
	if err != nil {
		return "", err
	}
	return jsonOf(data.Array()), nil
}

func (ask Ask) oneRequest(ctx context.Context, in requestInput) (string, error) {
	data, err := ask(ctx, http.MethodGet, "/v1/request/"+url.PathEscape(in.ID), nil)
	if err != nil {
		return "", err
	}
	text := withoutNulls(data)
	for _, body := range []string{"request_body", "response_body"} {
		if raw := gjson.Get(text, body).Raw; len(raw) > maxContent {
			cut := strings.ToValidUTF8(raw[:maxContent], "")
			if text, err = sjson.Set(text, body, fmt.Sprintf("%s… (%d of %d bytes)", cut, len(cut), len(raw))); err != nil {
				return "", err
			}
		}
	}
	return text, nil
}

func (ask Ask) ownBudgets(ctx context.Context, _ struct{}) (string, error) {
	data, err := ask(ctx, http.MethodGet, "/v1/key", nil)
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
