package observe

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// cassettes is a folder of recorded traffic, which is not part of this
// repository. Without it, the tests that replay it are skipped.
var cassettes = os.Getenv("WEIR_RECORDINGS")

type cassette struct {
	Name            string
	Provider        string
	URL             string
	Stream          bool
	RequestFile     string            `json:"request_file"`
	ResponseFile    string            `json:"response_file"`
	ResponseHeaders map[string]string `json:"response_headers"`
	Expected        struct {
		Model      string
		ResponseID string `json:"response_id"`
		Finish     string
		IsError    bool `json:"is_error"`
		Usage      map[string]int64
	}
}

func readCassettes(t *testing.T) []cassette {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(cassettes, "index.json"))
	if err != nil {
		t.Skip("no recorded traffic: ", err)
	}
	var index struct{ Entries []cassette }
	if err := json.Unmarshal(b, &index); err != nil {
		t.Fatal(err)
	}
	return index.Entries
}

func (c *cassette) body(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(cassettes, file))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (c *cassette) dialect(t *testing.T) (plugins.Dialect, *url.URL) {
	t.Helper()
	u, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	return Detect(c.Provider, u.Path), u
}

func TestRecordedTraffic(t *testing.T) {
	for _, c := range readCassettes(t) {
		t.Run(c.Name, func(t *testing.T) {
			d, u := c.dialect(t)
			if d == plugins.Unknown {
				t.Fatalf("no dialect for %s", c.URL)
			}
			if got := Provider(u.Host); got != c.Provider && u.Hostname() != "127.0.0.1" {
				t.Errorf("provider of %s: %q, want %q", u.Host, got, c.Provider)
			}
			body := c.body(t, c.ResponseFile)
			for name, cut := range chunkings {
				x := New(d, c.Provider, typed(c.ResponseHeaders["content-type"]))
				feed(x.Write, body, cut)
				x.Close()
				c.check(t, name, x.Info())
			}
			x := New(plugins.Unknown, "", typed(""))
			x.Write(body)
			x.Close()
			if !c.Expected.IsError {
				// Completions have the same shape for all who speak them, and
				// only Chat Completions are in the recordings.
				if got := x.Info().Dialect; got != d {
					t.Errorf("the shape shows %q, want %q", got, d)
				}
			}
		})
	}
}

func (c *cassette) check(t *testing.T, how string, got *plugins.ResponseInfo) {
	t.Helper()
	want := &c.Expected
	if got.Model != want.Model {
		t.Errorf("%s: model %q, want %q", how, got.Model, want.Model)
	}
	// The index has the id of the first chunk, which Azure leaves empty.
	if got.ResponseID != want.ResponseID && (want.ResponseID != "" || c.Provider != "azure") {
		t.Errorf("%s: id %q, want %q", how, got.ResponseID, want.ResponseID)
	}
	if got.Finish != want.Finish && want.Finish != "" {
		t.Errorf("%s: finish %q, want %q", how, got.Finish, want.Finish)
	}
	if got.Phase != plugins.Ended {
		t.Errorf("%s: phase %d at the end", how, got.Phase)
	}
	thoughtOnly := want.Usage != nil && want.Usage["output_tokens"] == want.Usage["reasoning_tokens"]
	if got.Content == want.IsError && !thoughtOnly {
		t.Errorf("%s: content %t", how, got.Content)
	}
	u := &got.Usage
	if want.Usage == nil && *u != (plugins.Usage{}) {
		t.Errorf("%s: usage %+v of none", how, u)
	}
	for key, count := range map[string]plugins.Count{
		"input_tokens":       u.Input,
		"output_tokens":      u.Output,
		"cache_read_tokens":  u.CacheRead,
		"cache_write_tokens": u.CacheWrite,
		"cache_write_1h":     u.CacheWrite1h,
		"reasoning_tokens":   u.Reasoning,
		"billed_input":       u.BilledInput,
		"billed_output":      u.BilledOutput,
		"total_tokens":       u.Total(),
	} {
		// The recordings' index has 0 for what was not reported.
		if n, ok := want.Usage[key]; ok && count.N != n {
			t.Errorf("%s: %s %d, want %d", how, key, count.N, n)
		}
	}
}

func TestRecordedRequests(t *testing.T) {
	for _, c := range readCassettes(t) {
		t.Run(c.Name, func(t *testing.T) {
			d, _ := c.dialect(t)
			body := c.body(t, c.RequestFile)
			var want struct {
				Model  string
				Stream bool
			}
			if err := json.Unmarshal(body, &want); err != nil {
				t.Skip(err)
			}
			r := NewRequestReader(d)
			r.Write(body)
			if got := r.Request(); got.Model != want.Model || got.Stream != want.Stream {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// chunkings are the sizes in which bodies come.
var chunkings = map[string]func() int{
	"whole":  func() int { return 1 << 30 },
	"bytes":  func() int { return 1 },
	"sevens": func() int { return 7 },
	"random": func() int { return 1 + rand.IntN(300) },
}

// feed writes body in chunks and overwrites each after it was written, as the
// buffers of a proxy are.
func feed(write func([]byte), body []byte, size func() int) {
	for len(body) > 0 {
		n := min(len(body), size())
		chunk := append([]byte(nil), body[:n]...)
		write(chunk)
		clear(chunk)
		body = body[n:]
	}
}
