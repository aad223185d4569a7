package chat

import (
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// content returns a string for a single text: every server accepts a string.
func content(parts []Part) any {
	switch {
	case len(parts) == 0:
		return ""
	case len(parts) == 1 && parts[0].Type == "text" && parts[0].CacheControl == nil:
		return parts[0].Text
	}
	return parts
}

func (a attempt) parts(content []translate.Part) ([]Part, error) {
	var parts []Part
	for i := range content {
		c := &content[i]
		p := Part{Type: "text", Text: c.Text}
		var err error
		switch {
		case c.IsText():
			if c.Text == "" {
				continue
			}
		case c.FileID != "" && (c.Type != translate.PartFile || a.vendor.messages.file != openAIFile):
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
		if a.vendor.messages.cacheMarks && c.CacheBreakpoint {
			p.CacheControl = &cacheControl{Type: "ephemeral"}
			if c.CachesLonger {
				p.CacheControl.TTL = "1h"
			}
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func (a attempt) image(c *translate.Part) (Part, error) {
	if !a.target.Capabilities.Takes("image") {
		return Part{}, plugins.Unsupported(c.Param, "The model does not take images.")
	}
	if a.vendor.messages.inlineImages && c.Data == "" {
		return Part{}, plugins.Unsupported(c.Param, "The provider fetches no images: send the data of the image in place of a URL.")
	}
	image := &ImageURL{URL: c.DataURL(), Detail: c.Detail}
	if c.Detail == "original" {
		image.Detail = "high"
		if err := a.request.DropWithWarning(c.Param+".detail", "not supported by the provider, 'high' in place of 'original'"); err != nil {
			return Part{}, err
		}
	}
	return Part{Type: "image_url", ImageURL: image}, nil
}

func (a attempt) audio(c *translate.Part) (Part, error) {
	if !a.target.Capabilities.Takes("audio") {
		return Part{}, plugins.Unsupported(c.Param, "The model does not take audio.")
	}
	p := Part{Type: "input_audio", InputAudio: Audio{c.Data, strings.TrimPrefix(c.MediaType, "audio/")}}
	if a.vendor.messages.bareAudio {
		p.InputAudio = c.Data
	}
	return p, nil
}

func (a attempt) document(c *translate.Part) (Part, error) {
	if a.vendor.messages.file == documentURL {
		return Part{Type: "document_url", DocumentURL: c.DataURL()}, nil
	}
	if c.FileID != "" {
		return Part{Type: "file", File: &File{FileID: c.FileID}}, nil
	}
	if c.URL != "" && a.vendor.messages.file != inlineFile {
		return Part{}, plugins.Unsupported(c.Param, "The provider fetches no files: send file_data in place of file_url.")
	}
	name := c.Filename
	if name == "" {
		name = "file"
	}
	return Part{Type: "file", File: &File{Filename: name, FileData: c.DataURL()}}, nil
}
