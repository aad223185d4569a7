package llmui

// ForgetFailures forgets the wrong keys of all addresses.
func ForgetFailures() {
	sessions.Lock()
	defer sessions.Unlock()
	clear(sessions.failures)
}
