package chat

import (
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// part is a part of a message's content.
type part struct {
	Type        string    `json:"type"`
	Text        string    `json:"text,omitempty"`
	ImageURL    *imageURL `json:"image_url,omitempty"`
	InputAudio  any       `json:"input_audio,omitempty"`  // an audio, or base64
	File        *file     `json:"file,omitempty"`         // OpenAI's
	DocumentURL string    `json:"document_url,omitempty"` // Mistral's
}

type imageURL struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

type audio struct {
	Data   string `json:"data"`
	Format string `json:"format"`
}

type file struct {
	FileID   string `json:"file_id,omitempty"`
	Filename string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// content returns a string for a single text: every server accepts a string.
func content(parts []part) any {
	switch {
	case len(parts) == 0:
		return ""
	case len(parts) == 1 && parts[0].Type == "text":
		return parts[0].Text
	}
	return parts
}

func (a attempt) parts(content []translate.Part) ([]part, error) {
	var parts []part
	for i := range content {
		c := &content[i]
		p := part{Type: "text", Text: c.Text}
		var err error
		switch {
		case c.IsText():
			if c.Text == "" {
				continue
			}
		case c.FileID != "" && (c.Type != translate.PartFile || a.file != openAIFile):
			err = plugins.Unsupported(c.Param, "The provider keeps no files: send the content in place of a file_id.")
		case c.Type == translate.PartImage:
			p, err = a.image(c)
		case c.Type == translate.PartAudio:
			p, err = a.audio(c)
		case c.Type == translate.PartFile:
			p, err = a.document(c)
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func (a attempt) image(c *translate.Part) (part, error) {
	if !a.Capabilities.Takes("image") {
		return part{}, plugins.Unsupported(c.Param, "The model does not take images.")
	}
	if a.inlineImages && c.Data == "" {
		return part{}, plugins.Unsupported(c.Param, "The provider fetches no images: send the data of the image in place of a URL.")
	}
	image := &imageURL{URL: c.DataURL(), Detail: c.Detail}
	if c.Detail == "original" {
		image.Detail = "high"
		if err := a.DropWithWarning(c.Param+".detail", "not supported by the provider, 'high' in place of 'original'"); err != nil {
			return part{}, err
		}
	}
	return part{Type: "image_url", ImageURL: image}, nil
}

func (a attempt) audio(c *translate.Part) (part, error) {
	if !a.Capabilities.Takes("audio") {
		return part{}, plugins.Unsupported(c.Param, "The model does not take audio.")
	}
	p := part{Type: "input_audio", InputAudio: audio{c.Data, strings.TrimPrefix(c.MediaType, "audio/")}}
	if a.bareAudio {
		p.InputAudio = c.Data
	}
	return p, nil
}

func (a attempt) document(c *translate.Part) (part, error) {
	if a.file == documentURL {
		return part{Type: "document_url", DocumentURL: c.DataURL()}, nil
	}
	if c.FileID != "" {
		return part{Type: "file", File: &file{FileID: c.FileID}}, nil
	}
	if c.URL != "" && a.file != inlineFile {
		return part{}, plugins.Unsupported(c.Param, "The provider fetches no files: send file_data in place of file_url.")
	}
	name := c.Filename
	if name == "" {
		name = "file"
	}
	return part{Type: "file", File: &file{Filename: name, FileData: c.DataURL()}}, nil
}
