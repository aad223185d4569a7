// Package translate is the contract between the gateway and the vendors: a
// neutral Request, the Provider that sends it in a vendor's format, and the
// Assembler that makes a Responses object or stream out of the answer.
package translate
