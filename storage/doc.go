// Package storage is the contract between Weir and what keeps its records: the
// record, the filter language with its type checker and the evaluator that
// defines it, the queries, and what a backend must do. It does not depend
// on Caddy; storagetest checks that a backend meets the contract.
package storage
