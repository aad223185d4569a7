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

// BindsNull is true if the driver needs a binding to NULL. In C, a parameter without a binding is
// NULL, and each binding costs a call.
const BindsNull = false

// Open opens a connection with an SQL function of one blob, which calls do.
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

// Copy copies the database that a connection sees to an empty file. After an error, the file is
// incomplete.
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

// ExtendedCode returns the extended result code of an error of SQLite, 0 for any other error.
func ExtendedCode(err error) int {
	failed, ok := errors.AsType[sqlite3.Error](err)
	if !ok {
		return 0
	}
	if failed.ExtendedCode == 0 { // an error of opening a file has only the primary code
		return int(failed.Code)
	}
	return int(failed.ExtendedCode)
}
