// Package plugins is the contract between Weir and the dialects of model
// providers: the neutral types that traffic is read into, and what code that
// reads it must do. It knows nothing of Caddy.
package plugins
