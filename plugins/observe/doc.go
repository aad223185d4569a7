// Package observe reads the requests and answers of model providers: their dialect, and what they say
// about the call. It reads incrementally, at any chunking and in constant memory. It never fails: it
// skips what it cannot read.
//
// All that is known of a dialect is in its Dialect, which Register adds. The
// built-in ones have a file for each vendor or endpoint: chat.go, responses.go,
// messages.go, gemini.go, bedrock.go and so on.
//
// The other files read what any dialect consists of. A framing (package
// streams) finds the events of a body, the scanner (scan.go) reads their JSON and
// picks the values that a Table names, and the observer (observer.go) makes a
// plugins.ResponseInfo of these. RequestReader does the same for requests.
package observe
