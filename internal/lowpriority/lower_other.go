//go:build !linux

package lowpriority

// lower does nothing: threads have no priority of their own here.
func lower() {}
