package gemini

import (
	"encoding/base64"
	"net/http"
	"path"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

type mediaPart struct {
	InlineData *blob     `json:"inlineData,omitempty"`
	FileData   *fileData `json:"fileData,omitempty"`
}

type blob struct {
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

type fileData struct {
	MIMEType string `json:"mimeType,omitempty"`
	FileURI  string `json:"fileUri"`
}

func fileURI(id string) string {
	baseURL, _ := plugins.DefaultTarget("gemini")
	return baseURL + apiVersion + id
}

func (r *request) media(part *translate.Part) (any, error) {
	if err := r.request.DropDetail(part); err != nil {
		return nil, err
	}
	var m mediaPart
	mediaType := ""
	switch {
	case part.Data != "":
		mediaType = inlineType(part)
		m.InlineData = &blob{mediaType, part.Data}
	case part.URL != "":
		mediaType = typeOf(part.URL)
		m.FileData = &fileData{mediaType, part.URL}
	case strings.HasPrefix(part.FileID, "files/") && !r.vertex:
		m.FileData = &fileData{FileURI: fileURI(part.FileID)}
	case strings.HasPrefix(part.FileID, "gs://") && r.vertex:
		mediaType = typeOf(part.FileID)
		m.FileData = &fileData{mediaType, part.FileID}
	default:
		return nil, plugins.Unsupported(part.Param, "The provider does not know the file '%s': files of the Gemini API are "+
			"named files/..., those of Vertex AI gs://...", part.FileID)
	}
	if kind := kindOf(part.Type, mediaType); kind != "" && !r.model.Takes(kind) {
		return nil, plugins.Unsupported(part.Param, "The model does not take input of the kind '%s'.", kind)
	}
	return m, nil
}

// kindOf is the kind of input as the catalogue names it, "" for text and for what is unknown.
func kindOf(t translate.PartType, mediaType string) string {
	kind, _, _ := strings.Cut(mediaType, "/")
	switch {
	case kind == "image" || kind == "audio" || kind == "video":
		return kind
	case mediaType == "application/pdf":
		return "pdf"
	case mediaType == "" && t == translate.PartImage:
		return "image"
	}
	return ""
}

// inlineType is the declared type of inline data. For bare base64, the name and the first bytes tell the type.
func inlineType(part *translate.Part) string {
	if part.MediaType != "application/octet-stream" {
		return part.MediaType
	}
	if t := typeOf(part.Filename); t != "" {
		return t
	}
	const sniffed = 512                                                                      // bytes that tell the type, and as many characters hold some of them
	head, _ := base64.StdEncoding.DecodeString(part.Data[:min(len(part.Data), sniffed)/4*4]) // what is broken tells nothing
	t, _, _ := strings.Cut(http.DetectContentType(head), ";")
	return t
}

// types are the media types that the provider documents, by the endings of names.
var types = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif",
	".heic": "image/heic", ".heif": "image/heif",
	".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".flac": "audio/flac", ".aac": "audio/aac", ".aiff": "audio/aiff", ".m4a": "audio/mp4",
	".mp4": "video/mp4", ".mov": "video/quicktime", ".webm": "video/webm", ".mpeg": "video/mpeg", ".mpg": "video/mpeg",
	".pdf": "application/pdf", ".txt": "text/plain", ".md": "text/markdown", ".csv": "text/csv", ".html": "text/html",
}

// typeOf returns the media type of a name or URL by its ending, "" if unknown: the provider finds out itself.
func typeOf(name string) string {
	name, _, _ = strings.Cut(name, "?")
	return types[strings.ToLower(path.Ext(name))]
}
