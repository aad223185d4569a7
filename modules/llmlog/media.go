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
