package redis

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/rueidis"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage/shared"
)

func init() {
	caddy.RegisterModule(Shared{})
}

// Shared keeps in Redis or Valkey what the gateways of a store share, so that several
// nodes spend from one balance, go on with what another one has begun, and spare a
// provider that has failed another one. The server must keep what it acknowledges: `appendonly yes` and
// `appendfsync always`; with `everysec`, its death forgets the last two seconds.
type Shared struct {
	// URL is the server: `redis://user:password@host:6379/0`, or `rediss://` for TLS.
	// Placeholders such as `{env.REDIS_URL}` are replaced.
	URL string `json:"url,omitempty"`

	// Name is under what nodes share. Default: the name of the store.
	Name string `json:"name,omitempty"`

	// Lease is how long the reservations of a node last after its death. They cover the
	// charges that the node still has when it is back: let it be longer than a restart.
	// Default: 1 minute.
	Lease caddy.Duration `json:"lease,omitempty"`

	// Timeout bounds how long a call waits for an answer of the server, once before it
	// begins and once at its end. Calls wait for none while the server does not answer.
	// Default: 2 s.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// Allowance is what each organisation may spend through each node while the
	// server cannot be reached, in US dollars, such as `5.00`. It is charged when the
	// server is back. Default: nothing: such calls are refused with 503.
	Allowance string `json:"allowance,omitempty"`

	allowance plugins.Nanodollars
}

// The metrics are process-wide, as the metrics of stores are.
var (
	allowances = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "weir_credits_allowance_dollars_total", Help: "What was reserved from the allowance, because Redis could not be reached.",
	})
	alone = metric.NewCounters("weir_shared_alone_total",
		"Uses of the gateway's memory, and seconds of the circuit breakers, without what other nodes know, because Redis could not be reached.", "part")
	parts = metric.SetOf("memory", "breakers")
)

// CaddyModule returns the Caddy module information.
func (Shared) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.shared.redis", New: func() caddy.Module { return new(Shared) }}
}

// Provision reads the address. It does not wait for the server.
func (s *Shared) Provision(ctx caddy.Context) (err error) {
	if s.URL, err = caddy.NewReplacer().ReplaceOrErr(s.URL, true, true); err != nil {
		return fmt.Errorf("shared redis: %w", err)
	}
	if _, err := rueidis.ParseURL(s.URL); err != nil {
		return fmt.Errorf("shared redis: want an address such as redis://127.0.0.1:6379/0: %w", err)
	}
	if s.Allowance != "" {
		amount, err := catalog.ParseRate(s.Allowance)
		if err != nil {
			return fmt.Errorf("shared redis: allowance: %w", err)
		}
		s.allowance = amount.Nano()
	}
	var registered prometheus.AlreadyRegisteredError
	for _, c := range []prometheus.Collector{allowances, alone} {
		if err := ctx.GetMetricsRegistry().Register(c); err != nil && !errors.As(err, &registered) {
			return err
		}
	}
	return nil
}

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	redis <url> {
//		name      <name>
//		lease     <duration>
//		timeout   <duration>
//		allowance <dollars>
//	}
func (s *Shared) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&s.URL) {
		return d.Err("redis takes the address of the server, as in `shared redis redis://127.0.0.1:6379/0`")
	}
	return directive.Options{
		"name":      directive.Text(&s.Name),
		"lease":     directive.Duration(&s.Lease),
		"timeout":   directive.Duration(&s.Timeout),
		"allowance": directive.Text(&s.Allowance),
	}.Parse(d, "redis")
}

// Key distinguishes configurations that share different things.
func (s *Shared) Key() string { return fmt.Sprint(*s) }

// Open opens what the gateways of a store share. dir is the store's directory on this node.
// Open does not wait for the server.
func (s *Shared) Open(store, dir string, logger *zap.Logger) (shared.State, error) {
	return Open(Options{
		URL: s.URL, Store: cmp.Or(s.Name, store), File: filepath.Join(dir, "charges"), Lease: time.Duration(s.Lease), Timeout: time.Duration(s.Timeout),
		Allowance: s.allowance, Lent: func(n plugins.Nanodollars) { allowances.Add(float64(n) / 1e9) },
		Alone: func(part string) { alone.With(parts.Of(part)).Inc() }, Logger: logger,
	})
}

// Interface guards
var (
	_ caddy.Provisioner     = (*Shared)(nil)
	_ caddyfile.Unmarshaler = (*Shared)(nil)
)
