package bedrock

import (
	"encoding/base64"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

type media struct {
	Format string `json:"format"`
	Name   string `json:"name,omitempty"`
	Source source `json:"source"`
	// Citations are of documents alone.
	Citations *citations `json:"citations,omitempty"`
}

type citations struct {
	Enabled bool `json:"enabled"`
}

// source is where the bytes are. One of its fields is set.
type source struct {
	Bytes      string      `json:"bytes,omitempty"` // in base64
	S3Location *s3Location `json:"s3Location,omitempty"`
}

type s3Location struct {
	URI string `json:"uri"`
}

// The formats, as Converse names them.
var (
	imageFormats    = []string{"png", "jpeg", "gif", "webp"}
	documentFormats = []string{"pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"}
	audioFormats    = []string{"mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "mka", "m4a", "mpeg", "mpga", "pcm", "webm"}
	videoFormats    = []string{"mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"}
)

// formatNames are Converse's names of formats by their media types and extensions.
var formatNames = map[string]string{
	"jpg":        "jpeg",
	"htm":        "html",
	"markdown":   "md",
	"plain":      "txt",
	"text":       "txt",
	"3gpp":       "three_gp",
	"3gp":        "three_gp",
	"quicktime":  "mov",
	"x-matroska": "mkv",
	"x-wav":      "wav",
	"msword":     "doc",
	"vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
	"vnd.ms-excel": "xls",
	"vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}

func (r *request) media(p *translate.Request, m *model, part *translate.Part, cited bool) (block, error) {
	if err := p.DropDetail(part); err != nil {
		return block{}, err
	}
	v := &media{Source: source{Bytes: part.Data}}
	switch {
	case part.FileID != "":
		return block{}, plugins.Unsupported(part.Param, "The provider keeps no files: send the content itself.")
	case part.Data == "" && !strings.HasPrefix(part.URL, "s3://"):
		return block{}, plugins.Unsupported(part.Param, "The provider fetches nothing but s3:// URLs: send the content itself.")
	case part.Data == "":
		v.Source.S3Location = &s3Location{part.URL}
	}
	names, err := formatsOf(part)
	if err != nil {
		return block{}, err
	}
	switch {
	case part.Type == translate.PartImage || strings.HasPrefix(part.MediaType, "image/"):
		return block{Image: v}, v.setFormat(m, part, "image", imageFormats, names)
	case part.Type == translate.PartAudio || strings.HasPrefix(part.MediaType, "audio/"):
		return block{Audio: v}, v.setFormat(m, part, "audio", audioFormats, names)
	case strings.HasPrefix(part.MediaType, "video/"):
		return block{Video: v}, v.setFormat(m, part, "video", videoFormats, names)
	}
	v.Name = r.documentName(part.Filename)
	if cited {
		v.Citations = &citations{true}
	}
	return block{Document: v}, v.setFormat(m, part, "document", documentFormats, names)
}

// citedText is a text as a document, because the model cites nothing else.
func (r *request) citedText(part *translate.Part) *media {
	return &media{
		Format: "txt", Name: r.documentName(part.Filename), Citations: &citations{true},
		Source: source{Bytes: base64.StdEncoding.EncodeToString([]byte(part.Text))},
	}
}

// setFormat takes the first of names that is a format. Documents are what the
// catalogue calls pdf, and no model that reads text lacks the others.
func (v *media) setFormat(m *model, part *translate.Part, kind string, formats, names []string) error {
	for _, name := range names {
		if other, ok := formatNames[name]; ok {
			name = other
		}
		if slices.Contains(formats, name) {
			v.Format = name
			break
		}
	}
	switch {
	case v.Format == "":
		return plugins.Unsupported(part.Param, "The provider takes input of the kind '%s' in the formats %s.", kind, strings.Join(formats, ", "))
	case kind != "document" && !m.Takes(kind):
		return plugins.Unsupported(part.Param, "The model does not take input of the kind '%s'.", kind)
	}
	return nil
}

// formatsOf returns the possible names of the format: by the media type and the
// names, and for a file without either by its content.
func formatsOf(part *translate.Part) ([]string, error) {
	_, subtype, _ := strings.Cut(part.MediaType, "/")
	names := []string{subtype}
	for _, name := range []string{part.Filename, part.URL} {
		names = append(names, strings.ToLower(strings.TrimPrefix(path.Ext(name), ".")))
	}
	if part.Type == translate.PartFile && part.Data != "" && (subtype == "" || subtype == "octet-stream") {
		data, err := part.Bytes()
		if err != nil {
			return nil, err
		}
		found, _, _ := strings.Cut(http.DetectContentType(data), ";")
		_, subtype, _ = strings.Cut(found, "/")
		names = append(names, subtype)
	}
	return names, nil
}

// documentName is the name of a document as the provider takes it: letters,
// digits, single spaces, hyphens, parentheses and brackets, and no name twice.
func (r *request) documentName(filename string) string {
	words := strings.FieldsFunc(strings.TrimSuffix(filename, path.Ext(filename)), func(c rune) bool {
		return !translate.IsAlphanumeric(c) && !strings.ContainsRune("-()[]", c)
	})
	base := strings.Join(words, " ")
	if base = base[:min(len(base), 190)]; base == "" {
		base = "document"
	}
	return r.documents.Name(base, func(n int) string {
		if n == 1 {
			return base
		}
		return base + " " + strconv.Itoa(n)
	})
}
