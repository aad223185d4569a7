// Package libsqlite is SQLite: its C code with CGO, which is the faster one, and the same code
// translated to Go without. Both read and write the same files.
package libsqlite

import (
	"database/sql/driver"
	"net/url"
	"os"
)

// Conn is a connection, used below database/sql. One goroutine at a time uses it.
type Conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	AutoCommit() bool // false within a transaction
}

// The primary result codes that callers tell apart, https://sqlite.org/rescode.html
const (
	Busy       = 5
	Locked     = 6
	Corrupt    = 11
	Protocol   = 15
	TooBig     = 18
	Constraint = 19
	Mismatch   = 20
	NotADB     = 26
)

// ConstraintUnique is an extended result code: an object of that name is there.
const ConstraintUnique = Constraint | 8<<8

// stepPages is the number of pages that are copied at a time, which takes a few milliseconds.
const stepPages = 1000

// Code is the primary result code of an error, 0 if it is not one of SQLite's.
func Code(err error) int { return ExtendedCode(err) & 0xff }

// ReadOnly are the parameters that read a file where it stands. Without a log that has something,
// SQLite needs no file beside it, which a read-only directory would refuse.
func ReadOnly(path string) url.Values {
	parameters := url.Values{"mode": {"ro"}}
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		parameters.Set("immutable", "1")
	}
	return parameters
}

// URI names a file with SQLite's parameters and the driver's, https://sqlite.org/uri.html
func URI(path string, parameters url.Values) string {
	// A path that is not absolute would be the host of a URL that has a Path.
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: parameters.Encode()}
	return name.String()
}
