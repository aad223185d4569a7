// Package observe reads the bytes that model providers send and are sent: which
// dialect they are, and what they say about the call. It reads incrementally,
// at any chunking and in constant memory, and never fails: what it cannot
// read, it skips.
package observe
