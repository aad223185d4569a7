// Package transcript turns the bodies of calls into what is kept and searched: the
// response object of a stream, the text that went in and came out, and the
// media that a request carried. It works on whole bodies, when the call is over.
//
// A Format says how the bodies of one dialect are read; package observe has one for
// each. Most streams bring pieces of the object that the same call returns without
// streaming, which a Shape joins. For the others a file of this package knows the
// events.
package transcript
