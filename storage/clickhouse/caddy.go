package clickhouse

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/storage"
)

func init() {
	caddy.RegisterModule(Storage{})
}

// Storage keeps records and bodies in ClickHouse (24.8 or later), to which many Weirs
// may write, and from which each of them answers. A journal in front of it keeps what
// the server has not taken yet.
//
// On a reload, a store with the same `journal` goes on with the connection that it
// has: other addresses, or another password, need a restart.
type Storage struct {
	// Addresses are hosts of the server or of its replicas, with the port of the native
	// protocol; the first that answers is used. Default port: 9000, with `tls` 9440.
	Addresses []string `json:"addresses,omitempty"`
	// Database is created if it does not exist. Default: `weir`.
	Database string `json:"database,omitempty"`
	// Username is who the server knows Weir as. Default: `default`.
	Username string `json:"username,omitempty"`
	// Password is that of the user; use a placeholder such as
	// `{env.CLICKHOUSE_PASSWORD}`. Default: none.
	Password string `json:"password,omitempty"`
	// TLS encrypts connections, and checks the server's certificate.
	TLS bool `json:"tls,omitempty"`
	// Cluster names a cluster of the server's configuration whose servers keep a replica
	// of the tables each. Default: none, a single server.
	Cluster string `json:"cluster,omitempty"`
	// QueryMemory bounds, in bytes, what one query takes of the server's memory.
	// Default: 4 GiB.
	QueryMemory directive.Size `json:"query_memory,omitempty"`
	// Journal is the directory of the journal, this Weir's own. Default:
	// `clickhouse-<database>` in Caddy's data directory.
	Journal string `json:"journal,omitempty"`

	options clickhouse.Options
}

// CaddyModule returns the Caddy module information.
func (Storage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "llm.storage.clickhouse",
		New: func() caddy.Module { return new(Storage) },
	}
}

const (
	defaultDatabase    = "weir"
	defaultQueryMemory = 4 << 30
	dialTimeout        = 5 * time.Second
)

// Provision checks the configuration. It connects to nothing.
func (s *Storage) Provision(caddy.Context) error {
	if len(s.Addresses) == 0 {
		return errors.New("clickhouse needs the address of its server, as in `clickhouse localhost:9000`")
	}
	if s.Database == "" {
		s.Database = defaultDatabase
	}
	if s.QueryMemory == 0 {
		s.QueryMemory = defaultQueryMemory
	}
	if s.Journal == "" {
		s.Journal = filepath.Join(caddy.AppDataDir(), "clickhouse-"+s.Database)
	}
	replacer := caddy.NewReplacer()
	for name, at := range map[string]*string{"database": &s.Database, "username": &s.Username, "cluster": &s.Cluster, "journal": &s.Journal} {
		value, err := replacer.ReplaceOrErr(*at, true, true)
		if err != nil {
			return fmt.Errorf("%s %q: %w", name, *at, err)
		}
		*at = value
	}
	password, err := replacer.ReplaceOrErr(s.Password, true, true)
	if err != nil {
		return fmt.Errorf("password: %w", err)
	}
	if s.Journal, err = filepath.Abs(s.Journal); err != nil {
		return fmt.Errorf("journal %q: %w", s.Journal, err)
	}
	s.options = clickhouse.Options{
		Auth:        clickhouse.Auth{Database: s.Database, Username: s.Username, Password: password},
		Compression: &clickhouse.Compression{Method: clickhouse.CompressionLZ4},
		DialTimeout: dialTimeout,
		Settings:    clickhouse.Settings{"max_memory_usage": int64(s.QueryMemory)},
	}
	port := "9000"
	if s.TLS {
		port, s.options.TLS = "9440", &tls.Config{MinVersion: tls.VersionTLS12}
	}
	for _, configured := range s.Addresses {
		address, err := replacer.ReplaceOrErr(configured, true, true)
		if err != nil {
			return fmt.Errorf("address %q: %w", configured, err)
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			address = net.JoinHostPort(address, port)
		}
		s.options.Addr = append(s.options.Addr, address)
	}
	return nil
}

// UnmarshalCaddyfile reads the backend's name, its addresses and its options:
//
//	clickhouse <address...> {
//		database     <name>
//		username     <name>
//		password     <password>
//		tls
//		cluster      <name>
//		query_memory <size>
//		journal      <directory>
//	}
func (s *Storage) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if s.Addresses = d.RemainingArgs(); len(s.Addresses) == 0 {
		return d.Err("clickhouse takes the address of its server, as in `clickhouse localhost:9000`")
	}
	set := directive.Options{
		"database":     directive.Text(&s.Database),
		"username":     directive.Text(&s.Username),
		"password":     directive.Text(&s.Password),
		"tls":          directive.Flag(&s.TLS),
		"cluster":      directive.Text(&s.Cluster),
		"query_memory": directive.Bytes(&s.QueryMemory),
		"journal":      directive.Text(&s.Journal),
	}
	return set.Parse(d, "clickhouse")
}

// Key identifies the store by its journal. Only one process at a time has a journal.
func (s *Storage) Key() string { return "clickhouse:" + s.Journal }

// Dir is the directory of the journal.
func (s *Storage) Dir() string { return s.Journal }

// Backend returns a backend of the database, not yet open.
func (s *Storage) Backend() storage.Backend {
	return New(Config{Options: s.options, Cluster: s.Cluster})
}

var (
	_ caddy.Provisioner     = (*Storage)(nil)
	_ caddyfile.Unmarshaler = (*Storage)(nil)
)
