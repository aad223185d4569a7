package recording

import (
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// logAccess adds the exchange to the entry of its request in Caddy's access log, if the server has one.
func (x *Exchange) logAccess() {
	if server, ok := x.ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && server.Logs == nil {
		return
	}
	if extra, ok := x.ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		var noContent *storage.Kept
		masked, _ := noContent.Masked(&x.Record, x.site.App.Maskers().Of(x.Record.Org, x.Record.ContentMask()))
		extra.Set(zap.Object("llm", (*accessLogEntry)(masked)))
	}
}

// accessLogEntry is a record as the access log shows it: without content and credentials.
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
	addQuantity(enc, "status", r.Status)
	addQuantity(enc, "latency", r.Latency)
	addQuantity(enc, "time_to_first_token", r.TimeToFirstToken)
	addQuantity(enc, "prompt_tokens", r.Usage.Input)
	addQuantity(enc, "completion_tokens", r.Usage.Output)
	addQuantity(enc, "cost", r.Cost)
	return nil
}

// addQuantity adds a quantity, unless it is unknown.
func addQuantity[T plugins.Unit](enc zapcore.ObjectEncoder, key string, q plugins.Quantity[T]) {
	if q.Valid {
		zap.Any(key, q.Value()).AddTo(enc)
	}
}

// Interface guard
var _ zapcore.ObjectMarshaler = (*accessLogEntry)(nil)
