// Package clientconfig changes the configuration files of coding agents so that they call a Weir,
// and undoes the change. It edits the text of a file: comments, unknown settings and white space
// stay as they are.
//
// A client is an entry of Clients. A format (JSON, TOML, YAML, .env) finds, inserts and removes
// the value at a path in a text. Apply keeps what Undo needs in the configuration folder of the
// user: the file as it was, and each setting as it was.
package clientconfig
