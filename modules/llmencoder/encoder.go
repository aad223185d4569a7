// Package llmencoder is the log encoder `format llm`, which keeps the
// credentials of model providers, and content that travels in headers, out of
// access, error and debug logs.
package llmencoder

import (
	"net/http"

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
// in the headers Authorization, X-Api-Key, Api-Key, X-Goog-Api-Key, Cookie and
// every one that ends in -Auth, and in the query of the URI; nor the inputs of
// prompts (Service-Prompt-Input-*). Caddy itself redacts Authorization and
// Cookie alone.
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
	e.Fields = map[string]logging.LogFieldFilter{
		"uri":             uriFilter{},
		"request>uri":     uriFilter{},
		"headers":         headerFilter{},
		"request>headers": headerFilter{},
		"resp_headers":    headerFilter{},
	}
	return e.FilterEncoder.Provision(ctx)
}

// UnmarshalCaddyfile sets the encoder up from Caddyfile tokens. Syntax:
//
//	llm [<encoder> {
//		<options of that encoder>
//	}]
func (e *Encoder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume encoder name
	if !d.NextArg() {
		return nil
	}
	name := d.Val()
	wrapped, err := caddyfile.UnmarshalModule(d, "caddy.logging.encoders."+name)
	if err != nil {
		return err
	}
	e.WrappedRaw = caddyconfig.JSONModuleObject(wrapped, "format", name, nil)
	return nil
}

// headerFilter replaces the values of headers that carry credentials.
type headerFilter struct{}

func (headerFilter) Filter(in zapcore.Field) zapcore.Field {
	loggable, ok := in.Interface.(caddyhttp.LoggableHTTPHeader)
	if !ok {
		return in
	}
	header := make(http.Header, len(loggable.Header))
	for name, values := range loggable.Header {
		if redact.Header(http.CanonicalHeaderKey(name)) {
			values = []string{"REDACTED"}
		}
		header[name] = values
	}
	loggable.Header = header
	return zap.Object(in.Key, loggable)
}

// uriFilter empties the values of query parameters that are credentials.
type uriFilter struct{}

func (uriFilter) Filter(in zapcore.Field) zapcore.Field {
	if in.Type != zapcore.StringType {
		return in
	}
	return zap.String(in.Key, redact.URL(in.String))
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
