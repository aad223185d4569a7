package compat

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Recording is one exchange with a provider, as a folder's index.json lists it.
type Recording struct {
	Name     string
	Provider string
	// Endpoint names the API: chat.completions, responses, messages,
	// generateContent, converse, invoke, cohere.v2.chat, ollama.chat or
	// ollama.generate.
	Endpoint string
	// Stream is true when the client asked for a stream.
	Stream   bool
	Status   int               `json:"http_status"`
	Header   map[string]string `json:"response_headers"`
	Expected Expected

	// URL is where the request went; Request and Response are the bodies.
	URL      *url.URL `json:"-"`
	Request  []byte   `json:"-"`
	Response []byte   `json:"-"`
}

// Expected is what the provider said about its answer.
type Expected struct {
	// Model is empty when the answer doesn't name it.
	Model string
	// Usage is nil when the answer doesn't tell it.
	Usage *Usage
}

// Usage counts tokens. Input includes those read from and written to the
// provider's cache, Output those of reasoning.
type Usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
	Reasoning  int64 `json:"reasoning_tokens"`
}

// loadRecordings reads the recordings that dir/index.json lists, in their order. Where
// there is no such file, the error is an [io/fs.ErrNotExist].
func loadRecordings(dir string) ([]*Recording, error) {
	b, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		return nil, err
	}
	var index struct {
		Entries []struct {
			Recording
			Address      string `json:"url"`
			RequestFile  string `json:"request_file"`
			ResponseFile string `json:"response_file"`
		}
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, fmt.Errorf("%s/index.json: %w", dir, err)
	}
	recordings := make([]*Recording, 0, len(index.Entries))
	for _, e := range index.Entries {
		r := &e.Recording
		if r.URL, err = url.Parse(e.Address); err != nil {
			return nil, fmt.Errorf("%s/index.json: %s: %w", dir, r.Name, err)
		}
		if r.Request, err = os.ReadFile(filepath.Join(dir, e.RequestFile)); err != nil {
			return nil, err
		}
		if r.Response, err = os.ReadFile(filepath.Join(dir, e.ResponseFile)); err != nil {
			return nil, err
		}
		recordings = append(recordings, r)
	}
	return recordings, nil
}

// Prefix stands in front of the provider's own path where a [replayServer] replays r.
func (r *Recording) Prefix() string { return prefix + r.Name }

const prefix = "/c/"

// events cuts the body where a provider's server would flush it: after each
// event of a stream.
func (r *Recording) events() [][]byte {
	cut := cutNothing
	switch contentType, _, _ := strings.Cut(r.Header["content-type"], ";"); contentType {
	case "text/event-stream":
		cut = cutSSE
	case "application/x-ndjson":
		cut = cutLine
	case "application/vnd.amazon.eventstream":
		cut = cutMessage
	}
	var events [][]byte
	for rest := r.Response; len(rest) > 0; {
		n := cut(rest)
		events, rest = append(events, rest[:n]), rest[n:]
	}
	return events
}
