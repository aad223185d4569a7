// Package llmgateway is the handler that calls the model of some provider: it
// decides which, translates, tries again elsewhere, bills and records.
package llmgateway
