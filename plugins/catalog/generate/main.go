// Command generate makes the built-in data of package catalog out of a snapshot
// of genai-prices (prices, names) and one of models.dev (facts, other prices).
// It keeps facts and leaves all prose behind. Its output depends on nothing but
// its input. Run from the root of the repository:
//
//	go run ./plugins/catalog/generate -modeldata <folder>
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"github.com/weirhq/weir/plugins/catalog"
)

// file is the catalogue as JSON, by the schema of docs/catalog.md.
type file struct {
	Version   string     `json:"version"`
	Sources   []source   `json:"sources"`
	Providers []provider `json:"providers"`
}

type source struct {
	Name     string `json:"name"`
	URL      string `json:"url"`
	Licence  string `json:"licence"`
	Snapshot string `json:"snapshot"`
}

type provider struct {
	ID       string           `json:"id"`
	Fallback []string         `json:"fallback,omitempty"`
	Models   []*catalog.Model `json:"models"`
}

// The snapshots carry no date of their own: change these with them.
var sources = []source{
	{"genai-prices", "https://github.com/pydantic/genai-prices", "MIT", "2026-08-21"},
	{"models.dev", "https://github.com/anomalyco/models.dev", "MIT", "2026-07-02"},
}

func main() {
	dir := flag.String("modeldata", "", "folder that holds genai-prices.json and models.dev.json")
	out := flag.String("o", "plugins/catalog/catalog.json.zst", "file to write")
	flag.Parse()
	if err := run(*dir, *out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(dir, out string) error {
	text, err := generate(dir)
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
func generate(dir string) ([]byte, error) {
	var priced []genaiProvider
	if err := read(filepath.Join(dir, "genai-prices.json"), &priced); err != nil {
		return nil, err
	}
	var described map[string]modelsDevProvider
	if err := read(filepath.Join(dir, "models.dev.json"), &described); err != nil {
		return nil, err
	}
	providers, err := merge(priced, described)
	if err != nil {
		return nil, err
	}
	own, err := echo()
	if err != nil {
		return nil, err
	}
	providers = append(providers, own)
	return json.Marshal(file{Version: sources[0].Snapshot, Sources: sources, Providers: providers})
}

func read(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
