// Package llmgateway is the handler that calls the models of all providers: it selects
// the provider, translates, retries, fails over, bills and records.
package llmgateway
