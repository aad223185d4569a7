package observe

import "strings"

const eventStreamMedia = "application/vnd.amazon.eventstream"

// IsStream reports whether a response is a stream of events, by its Content-Type or by the
// path of the call: a stream of Gemini may be one JSON array.
func IsStream(contentType, path string) bool {
	switch media := mediaType(contentType); media {
	case "text/event-stream", eventStreamMedia:
		return true
	default:
		return isLines(media) || strings.HasSuffix(path, ":streamGenerateContent")
	}
}

// mediaType is the lower-case media type of a Content-Type header.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// isLines reports whether a media type is one of newline-delimited JSON.
func isLines(media string) bool {
	switch media {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/jsonlines",
		"application/x-jsonlines", "application/json-lines", "application/stream+json":
		return true
	}
	return false
}
