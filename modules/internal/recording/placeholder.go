package recording

import (
	"context"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/storage"
)

// setPlaceholders defines the placeholders {http.llm.*}. Each has the value of the record at the time when it
// is replaced.
func setPlaceholders(ctx context.Context, r *storage.Record) {
	if repl, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		repl.Map(func(key string) (any, bool) {
			name, ok := strings.CutPrefix(key, "http.llm.")
			if !ok {
				return nil, false
			}
			return placeholder(r, name)
		})
	}
}

// placeholder returns the value of {http.llm.<name>}, false if there is no such placeholder.
func placeholder(r *storage.Record, name string) (any, bool) {
	switch name {
	case "id":
		return r.ID.String(), true
	case "org":
		return r.Org, true
	case "provider":
		return r.Provider, true
	case "model":
		return r.Model, true
	case "request_model":
		return r.RequestModel, true
	case "response_model":
		return r.ResponseModel, true
	case "user_id":
		return r.UserID, true
	case "session_id":
		return r.SessionID, true
	case "stream":
		return r.Stream, true
	case "prompt_tokens":
		return r.Usage.Input.Value(), true
	case "completion_tokens":
		return r.Usage.Output.Value(), true
	case "total_tokens":
		return r.Usage.Total().Value(), true
	case "cost":
		return r.Cost.Value(), true
	case "latency":
		return r.Latency.Value(), true
	case "time_to_first_token":
		return r.TimeToFirstToken.Value(), true
	case "end_state":
		return r.EndState.String(), true
	}
	return nil, false
}
