package wire

import "github.com/weirhq/weir/plugins"

type extractor struct{ seen plugins.Extraction }

// NewExtractor reads a response of dialect d.
func NewExtractor(d plugins.Dialect, provider, contentType string) plugins.Extractor {
	return &extractor{plugins.Extraction{Dialect: d}}
}

func (x *extractor) Write(p []byte)                  {}
func (x *extractor) Close()                          {}
func (x *extractor) Extraction() *plugins.Extraction { return &x.seen }
