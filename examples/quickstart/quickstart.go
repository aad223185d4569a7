// Package quickstart has the configuration for a first look, which `weir run` serves in a
// directory without a Caddyfile, and `weir init` writes.
package quickstart

import _ "embed"

// Caddyfile is the configuration.
//
//go:embed Caddyfile
var Caddyfile []byte

// Key is the API key unless $WEIR_API_KEY has another one.
const Key = "weir-quickstart"
