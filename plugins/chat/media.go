package chat

import (
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// content returns the content of a message: a string if it is a single text, because some servers
// accept no list, else the list of the parts.
func content(parts []Part) any {
	switch {
	case len(parts) == 0:
		return ""
	case len(parts) == 1 && parts[0].Type == "text" && parts[0].CacheControl == nil:
		return parts[0].Text
	}
	return parts
}

// parts returns the parts of a message as the vendor takes them. It leaves out empty texts, and
// returns an error that names the field of the first part that the vendor or the model cannot take.
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

// image returns the part of an image. Chat Completions has no detail "original": "high" is the
// nearest one.
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

// audio returns the part of a recording, which some vendors take without its format.
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

// document returns the part of a file, in the form that the vendor has for files.
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
