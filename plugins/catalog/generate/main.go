// Command generate makes the built-in data of package catalog. Models are those of
// models.dev. Prices are those of genai-prices; where it has none those of LiteLLM, and
// then those of models.dev. overrides.txt names the prices that are not taken, each with
// the reason. Only facts are kept, no prose. The output depends on the input alone. In the
// folder of the package:
//
//	go generate
//	go run ./generate -models-dev <file or URL>
//	go run ./generate -check
//	go run ./generate -check -judges <folder>
//
// The check compares the built-in prices with those of genai-prices and LiteLLM, and with each other. It
// fails on a difference that overrides.txt does not give a reason for. A folder can have further editions
// of the collections as judges (see judge.go).
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/weirhq/weir/plugins/catalog"
)

// file is the catalogue as JSON, by the schema of docs/catalog.md.
type file struct {
	Version   string   `json:"version"`
	Sources   []source `json:"sources"`
	Providers []any    `json:"providers"`
}

type provider struct {
	ID       string           `json:"id"`
	Fallback []string         `json:"fallback,omitempty"`
	Models   []*catalog.Model `json:"models"`
}

// echo is Weir's own provider, which has no network. It charges for every model name, so
// that a first look shows costs too.
const echo = `{"id":"echo","models":[{"id":"echo-1","name":"Echo","owner":"weir","match":{"regex":""},` +
	`"input":["text","image"],"output":["text"],"reasoning":true,"tool_call":true,"prices":[{"input":"1","output":"2"}]}]}`

func main() {
	modelsDev := flag.String("models-dev", "https://models.dev/api.json", "api.json of models.dev, as a path or URL")
	out := flag.String("o", "catalog.json.zst", "file to write")
	checks := flag.Bool("check", false, "compare the built-in prices with the packages instead")
	judges := flag.String("judges", "", "with -check: folder with other editions of the collections to compare the built-in prices with")
	flag.Parse()
	var err error
	if *checks {
		err = check(*judges)
	} else {
		err = write(*modelsDev, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func write(modelsDev, out string) error {
	c, err := readPackages()
	if err != nil {
		return err
	}
	if c.modelsDev, err = readModelsDev(modelsDev); err != nil {
		return fmt.Errorf("%w; give the path or URL of models.dev's api.json with -models-dev", err)
	}
	text, err := c.generate()
	if err != nil {
		return err
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	return os.WriteFile(out, w.EncodeAll(text, nil), 0o644)
}

func (c collections) generate() ([]byte, error) {
	providers, err := c.merge()
	if err != nil {
		return nil, err
	}
	described := c.modelsDev.source()
	f := file{Version: max(today.String(), described.Date), Sources: []source{genaiPin.source, litellmPin.source, described}}
	for _, p := range providers {
		f.Providers = append(f.Providers, p)
	}
	f.Providers = append(f.Providers, json.RawMessage(echo))
	text, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	_, err = catalog.Parse(text)
	return text, err
}
