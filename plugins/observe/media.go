package observe

import (
	"strings"

	"github.com/weirhq/weir/plugins/streams"
)

// IsStream reports whether a response is a stream of events, by its Content-Type or by the
// path of the call: a stream of Gemini may be one JSON array.
func IsStream(contentType, path string) bool {
	switch media := mediaType(contentType); media {
	case "text/event-stream", streams.FramesType:
		return true
	default:
		return streams.IsNDJSON(media) || strings.HasSuffix(path, ":streamGenerateContent")
	}
}

// mediaType is the lower-case media type of a Content-Type header.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}
