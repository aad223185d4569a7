// Package redis keeps in Redis or Valkey what the gateways of several nodes share:
// the balances of credits, what they remember of answers, circuit breakers, and the
// responses that they generate in the background. Each change is one script, so that no
// node sees half of one.
//
// Credits need the server. The rest of a node works alone while it cannot be reached.
//
// All keys of a store have a prefix with the same hash tag, as in
// `weir:{default}:org:acme`: in a cluster they are in one slot.
package redis
