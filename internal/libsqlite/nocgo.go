//go:build !cgo

package libsqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"net/url"

	"modernc.org/sqlite"
)

// Name is what database/sql calls the driver.
const Name = "sqlite"

// BindsNull reports whether a parameter that nothing is bound to must be bound to NULL: the driver
// takes it for a mistake.
const BindsNull = true

// Open opens a connection that knows a function of a blob.
func Open(uri, function string, do func([]byte) int64) (Conn, error) {
	var d sqlite.Driver
	err := d.RegisterDeterministicScalarFunction(function, 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		blob, ok := args[0].([]byte)
		if !ok { // of a text the driver gives what is before a NUL
			return nil, errors.New(function + " takes a blob")
		}
		return do(blob), nil
	})
	if err != nil {
		return nil, err
	}
	opened, err := d.Open(uri)
	if err != nil {
		return nil, err
	}
	return conn{opened.(connection)}, nil
}

// connection is what the driver's connections can do.
type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	NewBackup(uri string) (*sqlite.Backup, error)
}

type conn struct{ connection }

// AutoCommit implements Conn. The driver does not say, but no transaction begins within another.
func (c conn) AutoCommit() bool {
	if _, err := c.ExecContext(context.Background(), "BEGIN", nil); err != nil {
		return false
	}
	_, err := c.ExecContext(context.Background(), "COMMIT", nil)
	return err == nil
}

// Copy writes the database as a connection sees it to an empty file. A copy that is cut short
// is to be thrown away.
func Copy(ctx context.Context, from Conn, path string) error {
	b, err := from.(conn).NewBackup(URI(path, url.Values{
		"mode": {"rw"}, "_journal_mode": {"OFF"}, "_synchronous": {"OFF"},
	}))
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if more, err = b.Step(stepPages); err == nil {
			err = ctx.Err()
		}
	}
	return errors.Join(err, b.Finish())
}

// ExtendedCode is the extended result code of an error, 0 if it is not one of SQLite's.
func ExtendedCode(err error) int {
	if failed, ok := errors.AsType[*sqlite.Error](err); ok {
		return failed.Code()
	}
	return 0
}
