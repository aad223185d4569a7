// Package plugins holds the vocabulary that everything which knows model
// providers shares: dialects, token usage, what a request and a response say of
// their call, and errors. It knows nothing of Caddy.
//
// Two contracts build on it. Package observe reads native traffic as it passes.
// Package translate turns one neutral request into each vendor's, and each
// vendor's answer into one stream.
package plugins
