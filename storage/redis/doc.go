// Package redis keeps in Redis or Valkey what the gateways of several nodes share:
// credits, of which they spend from one balance, what they remember of answers, and
// circuit breakers. Each change is one script, so that no node sees, or acts on, half
// of one.
//
// Credits need the server. The memory and the breakers of a node go on alone while it
// cannot be reached.
//
// All keys of a store have a prefix with the same hash tag, as in
// `weir:{default}:org:acme`: in a cluster they are in one slot.
package redis
