package plugins

// ParseRequest reads the body of POST /v1/responses into the neutral request.
// Errors are *Error and name the field.
func ParseRequest(body []byte) (*Prompt, error) { return nil, nil }
