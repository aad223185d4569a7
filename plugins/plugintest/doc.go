// Package plugintest is what every provider must pass: a checker of the streams
// that the gateway sends, runs of a provider against what it was seen to answer,
// and a fuzz of that.
//
// Bridges to the Responses API have known bugs, numbered 1 to 32. A test that
// keeps one out has its number in its name (TestBug09Indices, "bug 9: ...", or a
// fixture bug09_...):
//
//	1-13, 20, 22-25, 29, 32  package plugins: the Assembler makes legal streams
//	1-13, 22-25              fixtures of the providers; those of both modes are 16
//	8, 14, 15                Calls, of every provider
//	14, 15, 21, 22, 28, 31   package plugins: requests are read
//	17-19, 21, 27, 28, 32    the providers: requests are written
//	16-19, 26, 27, 30        modules/llmgateway; 26 also package wire
package plugintest
