// Package capture watches an HTTP exchange as it passes through a handler,
// without changing what either side can observe: it counts the bytes, keeps
// bounded copies of the bodies, and tells an Observer what is about to happen
// before the client can see it. It knows nothing of language models.
package capture
