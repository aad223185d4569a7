//go:build cgo

package sqlite

// errDriver is nil where the driver works.
var errDriver error
