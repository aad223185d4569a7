// Package transcript extracts what is stored and searched from the bodies of calls: the
// response object of a stream, the text that went in and came out, and the
// media that a request carried. It works on whole bodies, when the call is over.
//
// A Format describes how to read the bodies of one dialect. Each dialect of package observe
// has one. Most streams bring pieces of the object that the same call returns without
// streaming, and a Shape joins the pieces. For other streams a file of this package knows the
// events.
package transcript
