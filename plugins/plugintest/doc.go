// Package plugintest has the tests that every provider must pass: a checker of the
// streams that the gateway sends, runs of a provider on recorded answers, a fuzz
// test of these, and checks of what a provider makes of a request.
package plugintest
