// Package plugintest is what every provider must pass: a checker of the streams
// that the gateway sends, runs of a provider against what it was seen to answer, a
// fuzz of that, and rows of what it makes of a request.
package plugintest
