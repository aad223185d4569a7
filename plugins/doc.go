// Package plugins has the types that all code about model providers shares:
// dialects, token usage, what a request and a response report of their call, and
// errors. It does not depend on Caddy.
//
// Two contracts build on it. Package observe reads native traffic as it passes.
// Package translate turns one neutral request into each vendor's, and each
// vendor's answer into one stream.
package plugins
