package anthropic

import (
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

type mediaBlock struct {
	Type         string        `json:"type"`
	Source       source        `json:"source"`
	Title        string        `json:"title,omitempty"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

// source is where the bytes of a block are. Type says which of the other fields is set.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
	FileID    string `json:"file_id,omitempty"`
}

var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

func (r *request) media(p *translate.Request, m *model, part *translate.Part) (any, error) {
	if err := p.DropDetail(part); err != nil {
		return nil, err
	}
	b := &mediaBlock{Type: "image"}
	if part.CacheBreakpoint {
		b.CacheControl = cacheOf(p, part.CachesLonger)
	}
	kind := "image"
	if part.Type == translate.PartFile {
		b.Type, b.Title, kind = "document", part.Filename, "pdf"
	}
	switch {
	case part.FileID != "":
		b.Source = source{Type: "file", FileID: part.FileID}
		r.beta("files-api-2025-04-14")
	case part.Data == "":
		b.Source = source{Type: "url", URL: part.URL}
	case part.Type == translate.PartFile:
		var err error
		if b.Source, err = document(part); err != nil {
			return nil, err
		}
	case slices.Contains(imageTypes, part.MediaType):
		b.Source = source{Type: "base64", MediaType: part.MediaType, Data: part.Data}
	default:
		return nil, plugins.Unsupported(part.Param, "The provider takes images of the types %s, not '%s'.",
			strings.Join(imageTypes, ", "), part.MediaType)
	}
	if b.Source.Type != "text" && !m.Takes(kind) {
		return nil, plugins.Unsupported(part.Param, "The model does not take input of the kind '%s'.", kind)
	}
	return b, nil
}

// document is an inline PDF, or a text. Clients that send bare base64 do not
// say which.
func document(part *translate.Part) (source, error) {
	const pdf = "application/pdf"
	data, err := part.Bytes()
	if err != nil {
		return source{}, err
	}
	switch found, _, _ := strings.Cut(http.DetectContentType(data), ";"); {
	case part.MediaType == pdf, found == pdf:
		return source{Type: "base64", MediaType: pdf, Data: part.Data}, nil
	case strings.HasPrefix(found, "text/"):
		return source{Type: "text", MediaType: "text/plain", Data: strings.ToValidUTF8(string(data), "\uFFFD")}, nil
	}
	return source{}, plugins.Unsupported(part.Param, "The provider takes PDFs and plain text, not files of the type '%s'.",
		part.MediaType)
}
