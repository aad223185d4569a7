// Package plugintest is what every provider must pass: a checker of the streams
// that the gateway sends, and a run of a provider against recorded traffic.
package plugintest
