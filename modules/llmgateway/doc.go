// Package llmgateway is the handler that answers POST /v1/responses by calling
// the model of some provider: it decides which, translates, tries again
// elsewhere, bills and records.
package llmgateway
