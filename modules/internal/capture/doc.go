// Package capture watches an HTTP exchange as it passes through a handler,
// without changing what either side can observe: it counts the bytes, keeps
// bounded copies of the bodies, and calls an Observer before the client can see what
// happens. It does not depend on language models.
package capture
