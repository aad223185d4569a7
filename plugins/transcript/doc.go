// Package transcript extracts what is stored and searched from the bodies of calls: the
// response object of a stream, the text that went in and came out, and the
// media that a request carried. It works on whole bodies, when the call is over.
//
// A Format describes how to read the bodies of one dialect; package observe has one for
// each. Most streams bring pieces of the object that the same call returns without
// streaming, which a Shape joins. For the others a file of this package knows the
// events.
package transcript
