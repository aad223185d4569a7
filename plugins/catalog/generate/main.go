// Command generate makes the built-in data of package catalog out of three
// collections: genai-prices and LiteLLM, of which it downloads pinned versions
// from PyPI with pip, and models.dev. It keeps facts and leaves all prose behind.
// Its output depends on nothing but its input. In the folder of the package:
//
//	go generate
//	go run ./generate -models-dev <file or URL>
//	go run ./generate -report differences.txt
//
// The last compares the built-in prices with those of the two packages, and
// fails on a difference that the file does not list.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/weirhq/weir/plugins/catalog"
)

// file is the catalogue as JSON, by the schema of docs/catalog.md.
type file struct {
	Version   string     `json:"version"`
	Sources   []source   `json:"sources"`
	Providers []provider `json:"providers"`
}

type provider struct {
	ID       string           `json:"id"`
	Fallback []string         `json:"fallback,omitempty"`
	Models   []*catalog.Model `json:"models"`
}

func main() {
	var in inputs
	flag.StringVar(&in.genai, "genai-prices", "", "wheel of the package genai-prices, as a path or URL (default: the pinned version, by pip)")
	flag.StringVar(&in.litellm, "litellm", "", "wheel of the package litellm, as a path or URL (default: the pinned version, by pip)")
	flag.StringVar(&in.modelsDev, "models-dev", "https://models.dev/api.json", "api.json of models.dev, as a path or URL")
	out := flag.String("o", "catalog.json.zst", "file to write")
	report := flag.String("report", "", "compare instead, and allow the differences that this file lists")
	flag.Parse()
	var err error
	if *report != "" {
		err = compare(in, *report)
	} else {
		err = write(in, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func write(in inputs, out string) error {
	text, err := generate(in)
	if err != nil {
		return err
	}
	if _, err := catalog.Parse(text); err != nil {
		return err
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	return os.WriteFile(out, w.EncodeAll(text, nil), 0o644)
}

// generate is the catalogue's JSON.
func generate(in inputs) ([]byte, error) {
	c, err := in.read()
	if err != nil {
		return nil, err
	}
	providers, err := c.merge()
	if err != nil {
		return nil, err
	}
	own, err := echo()
	if err != nil {
		return nil, err
	}
	sources := c.sources()
	version := ""
	for _, s := range sources {
		version = max(version, s.Date)
	}
	return json.Marshal(file{Version: cmp.Or(version, "unknown"), Sources: sources, Providers: append(providers, own)})
}
