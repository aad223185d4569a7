// Package llmencoder is the log encoder `format llm`, which keeps the
// credentials of model providers, and content that travels in headers, out of
// access, error and debug logs.
package llmencoder

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/logging"
	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
	"golang.org/x/net/http/httpguts"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/internal/redact"
)

func init() {
	caddy.RegisterModule(new(Encoder))
}

// Encoder encodes logs as another encoder does, `json` or `console` unless
// configured, without the credentials that requests to model providers carry, and
// without content:
//
//   - headers whose names have a word like key, token, auth, secret, password,
//     signature or cookie in them, and Sec-WebSocket-Protocol, are REDACTED, and so
//     are the inputs of prompts (Service-Prompt-Input-*), properties in JSON
//     (Service-Properties) and the trailers of answers;
//   - of the query of the URI, and of headers that hold a URL, the values are kept
//     that are known to be harmless;
//   - the errors of `reverse_proxy` and `llm_forward` do not quote what a provider sent;
//   - what `mask` names, for any organisation, is a label.
//
// Caddy itself redacts Authorization and Cookie alone.
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

// Clone implements zapcore.Encoder.
func (e *Encoder) Clone() zapcore.Encoder {
	return &Encoder{e.FilterEncoder.Clone().(logging.FilterEncoder)}
}

// EncodeEntry implements zapcore.Encoder.
func (e *Encoder) EncodeEntry(entry zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	if strings.HasPrefix(entry.LoggerName, "http.handlers.reverse_proxy") || strings.HasPrefix(entry.LoggerName, "http.handlers.llm_forward") {
		fields = slices.Clone(fields)
		for i, f := range fields {
			if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
				fields[i] = zap.NamedError(f.Key, redact.Upstream(err))
			}
		}
	}
	line, err := e.FilterEncoder.EncodeEntry(entry, fields)
	if m := mask.Logs.Load(); m != nil && err == nil {
		if masked := m.Body(line.Bytes(), nil); len(masked) > 0 && &masked[0] != &line.Bytes()[0] {
			line.Reset()
			_, err = line.Write(masked)
		}
	}
	return line, err
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
	trailers := strings.Split(strings.Join(header["Trailer"], ", "), ", ")
	for name, values := range header {
		switch canonical := http.CanonicalHeaderKey(name); {
		case !httpguts.ValidHeaderFieldName(strings.TrimPrefix(name, http.TrailerPrefix)):
			name, values = "invalid", []string{"REDACTED"} // net/http takes names with spaces from providers
		case redact.Header(canonical), strings.HasPrefix(name, http.TrailerPrefix), slices.Contains(trailers, name):
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

// uriFilter leaves out the values of a URI's query that are not known to be
// harmless.
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
)
