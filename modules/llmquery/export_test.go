package llmquery

// Scopes are the scopes that the endpoints want, by method and path.
func Scopes() map[string]string {
	scopes := make(map[string]string)
	for path, methods := range endpoints {
		for method, e := range methods {
			scopes[method+" "+path] = e.scope
		}
	}
	return scopes
}
