// Package llmencoder is the log encoder `format llm`, which keeps the
// credentials of model providers, and content that travels in headers, out of
// access, error and debug logs.
package llmencoder

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/logging"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weirhq/weir/modules/internal/redact"
)

func init() {
	caddy.RegisterModule(new(Encoder))
}

// Encoder encodes logs as another encoder does, `json` or `console` unless
// configured, without the credentials that requests to model providers carry:
// in the headers Cookie, Set-Cookie, Sec-WebSocket-Protocol and those whose
// names end in Authorization, -Auth, -Key, -Token or -Secret, and in the query
// of the URI and of headers that hold a URL; nor the inputs of prompts
// (Service-Prompt-Input-*). Caddy itself redacts Authorization and Cookie alone.
//
// It takes the fields of the `filter` encoder, and filters those too.
type Encoder struct {
	logging.FilterEncoder
}

// CaddyModule returns the Caddy module information.
func (*Encoder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.logging.encoders.llm", New: func() caddy.Module { return new(Encoder) }}
}

// Provision sets the encoder up.
func (e *Encoder) Provision(ctx caddy.Context) error {
	if err := e.FilterEncoder.Provision(ctx); err != nil {
		return err
	}
	for _, name := range []string{"uri", "request>uri"} {
		e.Fields[name] = uriFilter{e.Fields[name]}
	}
	for _, name := range []string{"headers", "request>headers", "resp_headers"} {
		single := make(map[string]logging.LogFieldFilter)
		for field, filter := range e.Fields {
			if header, ok := strings.CutPrefix(field, name+">"); ok {
				single[header] = filter
			}
		}
		e.Fields[name] = headerFilter{e.Fields[name], single}
	}
	return nil
}

// UnmarshalCaddyfile sets the encoder up from Caddyfile tokens. Syntax:
//
//	llm [<encoder> {
//		<options of that encoder>
//	}]
func (e *Encoder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume encoder name
	if !d.NextArg() {
		if d.NextBlock(0) {
			return d.Errf("unrecognized subdirective '%s': name the encoder whose options these are, as in llm json", d.Val())
		}
		return nil
	}
	name := d.Val()
	wrapped, err := caddyfile.UnmarshalModule(d, "caddy.logging.encoders."+name)
	if err != nil {
		return err
	}
	if filter, ok := wrapped.(*logging.FilterEncoder); ok {
		// Of two filter encoders, the inner one would not know the fields of a
		// request by their path.
		e.WrappedRaw, e.FieldsRaw = filter.WrappedRaw, filter.FieldsRaw
		return nil
	}
	e.WrappedRaw = caddyconfig.JSONModuleObject(wrapped, "format", name, nil)
	return nil
}

// headerFilter replaces the values of headers that carry credentials.
type headerFilter struct {
	configured logging.LogFieldFilter            // or nil; comes after
	single     map[string]logging.LogFieldFilter // of single headers
}

func (f headerFilter) Filter(in zapcore.Field) zapcore.Field {
	if loggable, ok := in.Interface.(caddyhttp.LoggableHTTPHeader); ok {
		loggable.Header = redactHeader(loggable.Header)
		in = zap.Object(in.Key, filteredHeader{loggable, f.single})
	}
	if f.configured != nil {
		return f.configured.Filter(in)
	}
	return in
}

func redactHeader(header http.Header) http.Header {
	redacted := make(http.Header, len(header))
	for name, values := range header {
		switch canonical := http.CanonicalHeaderKey(name); {
		case redact.Header(canonical):
			values = []string{"REDACTED"}
		case canonical == "Referer" || strings.HasSuffix(canonical, "Location") || strings.HasSuffix(canonical, "-Url"):
			urls := make([]string, len(values))
			for i, value := range values {
				urls[i] = redact.URL(value)
			}
			values = urls
		}
		redacted[name] = values
	}
	return redacted
}

// filteredHeader is a header whose fields pass the filters that are configured.
type filteredHeader struct {
	caddyhttp.LoggableHTTPHeader
	filters map[string]logging.LogFieldFilter
}

func (h filteredHeader) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	if len(h.filters) == 0 {
		return h.LoggableHTTPHeader.MarshalLogObject(enc)
	}
	for name, values := range h.Header {
		field := zap.Array(name, caddyhttp.LoggableStringArray(values))
		if filter := h.filters[name]; filter != nil {
			field = filter.Filter(field)
		}
		field.AddTo(enc)
	}
	return nil
}

// uriFilter empties the values of query parameters that are credentials.
type uriFilter struct {
	configured logging.LogFieldFilter // or nil; comes after
}

func (f uriFilter) Filter(in zapcore.Field) zapcore.Field {
	if in.Type == zapcore.StringType {
		in = zap.String(in.Key, redact.URL(in.String))
	}
	if f.configured != nil {
		return f.configured.Filter(in)
	}
	return in
}

// Interface guards
var (
	_ zapcore.Encoder                  = (*Encoder)(nil)
	_ caddy.Provisioner                = (*Encoder)(nil)
	_ caddy.ConfiguresFormatterDefault = (*Encoder)(nil)
	_ caddyfile.Unmarshaler            = (*Encoder)(nil)
	_ logging.LogFieldFilter           = headerFilter{}
	_ logging.LogFieldFilter           = uriFilter{}
)
