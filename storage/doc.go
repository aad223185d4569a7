// Package storage is the contract between Weir and what keeps its records: the
// record, the filter language with its type checker and the evaluator that
// defines it, the queries, and what a backend must do. It knows nothing of
// Caddy; storagetest checks that a backend keeps the contract.
package storage
