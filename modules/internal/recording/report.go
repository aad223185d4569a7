package recording

import (
	"context"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Log gives the access log what the exchange came to.
func Log(ctx context.Context, r *storage.Record) {
	if extra, ok := ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Set(zap.Object("llm", (*logged)(r)))
	}
}

// logged is what the access log shows of a record. It has nothing of what was
// said, and no credentials.
type logged storage.Record

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (r *logged) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("id", r.ID.String())
	enc.AddString("org", r.Org)
	enc.AddString("provider", r.Provider)
	enc.AddString("model", r.Model)
	enc.AddString("end_state", r.EndState.String())
	enc.AddBool("stream", r.Stream)
	for _, text := range [...]struct{ key, value string }{
		{"user_id", r.UserID},
		{"session_id", r.SessionID},
	} {
		if text.value != "" {
			enc.AddString(text.key, text.value)
		}
	}
	for _, count := range [...]struct {
		key   string
		value plugins.Count
	}{
		{"status", r.Status},
		{"latency", r.Latency},
		{"time_to_first_token", r.TimeToFirstToken},
		{"prompt_tokens", r.Usage.Input},
		{"completion_tokens", r.Usage.Output},
	} {
		if count.value.Valid {
			enc.AddInt64(count.key, count.value.N)
		}
	}
	if r.Cost.Valid {
		enc.AddFloat64("cost", dollars(r.Cost.N))
	}
	return nil
}

// Placeholders answers {http.llm.*} from the record as it is when asked.
func Placeholders(ctx context.Context, r *storage.Record) {
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
		return known(r.Usage.Input), true
	case "completion_tokens":
		return known(r.Usage.Output), true
	case "total_tokens":
		return known(r.Usage.Total()), true
	case "cost":
		if !r.Cost.Valid {
			return nil, true
		}
		return dollars(r.Cost.N), true
	case "latency":
		return known(r.Latency), true
	case "time_to_first_token":
		return known(r.TimeToFirstToken), true
	case "end_state":
		return r.EndState.String(), true
	}
	return nil, false
}

// known is a count as a placeholder's value, nil where it is unknown.
func known(c plugins.Count) any {
	if !c.Valid {
		return nil
	}
	return c.N
}

func dollars(nano int64) float64 { return float64(nano) / 1e9 }

// Interface guard
var _ zapcore.ObjectMarshaler = (*logged)(nil)
