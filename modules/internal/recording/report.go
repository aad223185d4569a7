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

// logAccess adds the exchange to Caddy's access log.
func (x *Exchange) logAccess() {
	if extra, ok := x.ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		var none *storage.Kept // the log has no content
		masked, _ := none.Masked(&x.Record, x.site.App.Maskers().Of(x.Record.Org, x.Record.ContentMask()))
		extra.Set(zap.Object("llm", (*accessLogEntry)(masked)))
	}
}

// accessLogEntry is what the access log shows of a record. It has nothing of what was
// said, and no credentials.
type accessLogEntry storage.Record

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (r *accessLogEntry) MarshalLogObject(enc zapcore.ObjectEncoder) error {
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
	log(enc, "status", r.Status)
	log(enc, "latency", r.Latency)
	log(enc, "time_to_first_token", r.TimeToFirstToken)
	log(enc, "prompt_tokens", r.Usage.Input)
	log(enc, "completion_tokens", r.Usage.Output)
	log(enc, "cost", r.Cost)
	return nil
}

func log[T plugins.Unit](enc zapcore.ObjectEncoder, key string, q plugins.Quantity[T]) {
	if q.Valid {
		zap.Any(key, q.Value()).AddTo(enc)
	}
}

// setPlaceholders answers {http.llm.*} from the record as it is when asked.
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

// Interface guard
var _ zapcore.ObjectMarshaler = (*accessLogEntry)(nil)
