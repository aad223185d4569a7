//go:build cgo

package libsqlite

import (
	"context"
	"errors"
	"net/url"

	"github.com/mattn/go-sqlite3"
)

// Name is what database/sql calls the driver.
const Name = "sqlite3"

// BindsNull tells whether a parameter that nothing is bound to must be bound to NULL. To the C
// code it is NULL, and each binding is a call.
const BindsNull = false

// Open opens a connection that knows a function of a blob.
func Open(uri, function string, do func([]byte) int64) (Conn, error) {
	opened, err := new(sqlite3.SQLiteDriver).Open(uri)
	if err != nil {
		return nil, err
	}
	c := opened.(*sqlite3.SQLiteConn)
	if err := c.RegisterFunc(function, do, true); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Copy writes the database as a connection sees it to an empty file. A copy that is cut short
// is to be thrown away.
func Copy(ctx context.Context, from Conn, path string) error {
	opened, err := new(sqlite3.SQLiteDriver).Open(URI(path, url.Values{
		"mode": {"rw"}, "_journal_mode": {"OFF"}, "_synchronous": {"OFF"},
	}))
	if err != nil {
		return err
	}
	to := opened.(*sqlite3.SQLiteConn)
	b, err := to.Backup("main", from.(*sqlite3.SQLiteConn), "main")
	if err != nil {
		return errors.Join(err, to.Close())
	}
	for done := false; !done && err == nil; {
		if done, err = b.Step(stepPages); err == nil {
			err = ctx.Err()
		}
	}
	return errors.Join(err, b.Finish(), to.Close())
}

// ExtendedCode is the extended result code of an error, 0 if it is not one of SQLite's.
func ExtendedCode(err error) int {
	failed, ok := errors.AsType[sqlite3.Error](err)
	if !ok {
		return 0
	}
	if failed.ExtendedCode == 0 { // opening a file answers only the other
		return int(failed.Code)
	}
	return int(failed.ExtendedCode)
}
