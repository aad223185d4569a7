package sqlite

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/storage"
)

func init() {
	caddy.RegisterModule(Storage{})
}

// Storage keeps records in an SQLite database: one file, which needs no server.
// Bodies are not in it but in segments beside it. While Weir runs, the database
// can be read with the `sqlite3` shell; its view `request_log` is made for that.
//
// The file and the segments belong to one process at a time.
type Storage struct {
	// Path is the database file; it and its directory are created when they do
	// not exist. The segments are kept in the directory `<path>.segments`. A
	// relative path starts at the working directory; placeholders such as
	// `{env.WEIR_DATA}` are replaced.
	Path string `json:"path,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (Storage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "llm.storage.sqlite",
		New: func() caddy.Module { return new(Storage) },
	}
}

// Provision makes the path absolute. It touches no file.
func (s *Storage) Provision(caddy.Context) error {
	path, err := caddy.NewReplacer().ReplaceOrErr(s.Path, true, true)
	if err != nil {
		return fmt.Errorf("path %q: %w", s.Path, err)
	}
	if path == "" {
		return fmt.Errorf("sqlite needs a path to its database file, as in `sqlite ./weir.db`")
	}
	if s.Path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("path %q: %w", path, err)
	}
	if info, err := os.Stat(s.Path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory: name a file in it, as in `sqlite %[1]s/weir.db`", s.Path)
	}
	return nil
}

// UnmarshalCaddyfile reads the backend's name and the path of its file:
//
//	sqlite <path>
func (s *Storage) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&s.Path) {
		return d.ArgErr()
	}
	if d.NextBlock(d.Nesting()) {
		return d.Errf("sqlite has no option %q: it takes its path alone", d.Val())
	}
	return nil
}

// Key identifies the database: configurations that name the same file share it.
func (s *Storage) Key() string { return "sqlite:" + s.Path }

// Dir is the directory of the journal. (The name `<path>-journal` is SQLite's
// own.)
func (s *Storage) Dir() string { return s.Path + ".segments" }

// Backend returns a backend on the file, not yet open.
func (s *Storage) Backend() storage.Backend { return New(s.Path) }

var (
	_ caddy.Provisioner     = (*Storage)(nil)
	_ caddyfile.Unmarshaler = (*Storage)(nil)
)
