// Package redis keeps the credits of organisations in Redis or Valkey, where several
// nodes spend from one balance. Each change is one script, so that no node sees, or
// acts on, half of one.
//
// All keys of a store have a prefix with the same hash tag, as in
// `weir:{default}:org:acme`: in a cluster they are in one slot.
package redis
