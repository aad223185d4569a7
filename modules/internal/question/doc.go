// Package question reads filters, sort keys and groups as people and agents write them, into what the
// query API takes.
package question
