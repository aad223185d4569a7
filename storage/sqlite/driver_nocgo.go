//go:build !cgo

package sqlite

import (
	"context"
	"errors"
)

// errDriver says why the driver cannot work: without CGO it compiles, but every
// call fails.
var errDriver = errors.New("sqlite needs CGO: build with CGO_ENABLED=1 and a C compiler (xcaddy disables CGO by default)")

func dial(string) (handle, error) { return nil, errDriver }

func copyPages(context.Context, *conn, *conn) error { return errDriver }

func explain(err error) error { return err }

func rejected(err error) error { return err }
