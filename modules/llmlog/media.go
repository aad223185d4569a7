package llmlog

import (
	"net/http"
	"strings"
)

// contentEncoding joins the Content-Encoding headers, as a list may be split.
func contentEncoding(header http.Header) string {
	switch encodings := header["Content-Encoding"]; len(encodings) {
	case 0:
		return ""
	case 1:
		return encodings[0]
	default:
		return strings.Join(encodings, ", ")
	}
}

const serverSentEvents = "text/event-stream"

// mediaType is the lower-case media type of a Content-Type header.
func mediaType(contentType string) string {
	mediaType, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(mediaType))
}

// isStream tells from its media type whether an answer is a stream of events.
// Gemini's may also be one JSON array, which only the path gives away.
func isStream(contentType, path string) bool {
	switch mediaType(contentType) {
	case serverSentEvents, "application/vnd.amazon.eventstream",
		"application/x-ndjson", "application/ndjson", "application/jsonl", "application/stream+json":
		return true
	}
	return strings.HasSuffix(path, ":streamGenerateContent")
}
