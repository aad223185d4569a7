package plugins

func appendString(b []byte, s string) []byte { return b }

func appendStringOrNull(b []byte, s string) []byte { return b }
