// Package plugintest has the tests that every provider must pass. It checks the streams that the
// gateway sends and the requests that a provider makes, and runs and fuzzes a provider on recorded
// answers.
package plugintest
