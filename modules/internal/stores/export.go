package stores

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/export"
	"github.com/weirhq/weir/storage"
)

// Export configures where the records of a store are sent besides, as spans of
// OpenTelemetry's GenAI conventions.
type Export struct {
	// Endpoint is the collector's URL for OTLP/HTTP. If it has no path, `/v1/traces` is
	// added.
	Endpoint string `json:"endpoint,omitempty"`

	// Headers are sent with each request, such as credentials, best as placeholders.
	Headers map[string]string `json:"headers,omitempty"`

	// Content adds requests and answers to the spans, unless the caller omitted them.
	Content bool `json:"content,omitempty"`
}

// provision expands placeholders and checks the settings.
func (e *Export) provision() error {
	repl := caddy.NewReplacer()
	e.Endpoint = repl.ReplaceAll(e.Endpoint, "")
	u, err := url.Parse(e.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("otlp %q: want the URL of a collector, like http://localhost:4318", e.Endpoint)
	}
	if u.User != nil || u.RawQuery != "" { // the client would leave them out
		return fmt.Errorf("otlp %q: want a URL without user and query, like http://localhost:4318; credentials go into a header", redact.URL(e.Endpoint))
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
		e.Endpoint = u.String()
	}
	for name, value := range e.Headers {
		value = repl.ReplaceAll(value, "")
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("otlp: %q is no header", name)
		}
		e.Headers[name] = value
	}
	return nil
}

// configuredExporter is an exporter with the settings that it was made from.
type configuredExporter struct {
	*export.Exporter
	settings Export
}

// exportTimeout bounds how long a collector holds up the end.
const exportTimeout = 3 * time.Second

// exportTo has records sent as configured from now on. What waits under earlier
// settings is still sent.
func (s *Store) exportTo(config *Export, logger *zap.Logger) {
	old := s.exported.Load()
	if config == nil {
		s.exported.Store(nil)
	} else {
		if old != nil && old.settings.Endpoint == config.Endpoint && old.settings.Content == config.Content &&
			maps.Equal(old.settings.Headers, config.Headers) {
			return
		}
		names := make(metric.Set)
		names.Add(s.name)
		s.exported.Store(&configuredExporter{settings: *config, Exporter: export.New(export.Options{
			Store: names.Of(s.name), Endpoint: config.Endpoint, Headers: config.Headers, Content: config.Content, Erased: s.journal.Erased, Logger: logger,
		})})
	}
	if old != nil {
		go old.close(context.Background())
	}
}

// Export sends the record of a call that is over to the collector of the store, if it has one.
// masked returns the record and its content as they are stored. Export never waits, and keeps nothing of
// the content.
func (s *Store) Export(masked func() (*storage.Record, *storage.Content)) {
	if e := s.exported.Load(); e != nil {
		e.Export(masked())
	}
}

// stopExport sends what waits, within bounds.
func (s *Store) stopExport(ctx context.Context) {
	if e := s.exported.Swap(nil); e != nil {
		e.close(ctx)
	}
}

func (e *configuredExporter) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, exportTimeout)
	defer cancel()
	e.Close(ctx)
}
