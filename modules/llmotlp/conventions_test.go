package llmotlp_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

var update = flag.Bool("update", false, "write what the records are into testdata")

// fields are those of a record that a span decides.
var fields = []string{
	"request_created_at", "response_created_at", "request_user_id", "request_model", "response_model", "model", "provider", "target_url",
	"response_id", "response_status", "end_state", "delay_ms", "time_to_first_token", "time_to_last_token",
	"prompt_tokens", "completion_tokens", "total_tokens", "prompt_cache_read_tokens", "prompt_cache_write_tokens", "reasoning_tokens",
	"cost", "organization_id", "request_path", "scores", "feedback_rating", "prompt_id", "prompt_version", "job_id", "trace_id", "span_id", "properties", "assets",
	"request_omitted", "response_omitted", "request_body", "response_body", "inputs",
}

// TestConventions sends each file of testdata, spans of one convention, and
// compares the records with those beside it. What is null is left out there.
func TestConventions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, file := range files {
		want, isSpans := strings.CutSuffix(file, ".records.json")
		if isSpans {
			continue
		}
		want = strings.TrimSuffix(want, ".json") + ".records.json"
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			s := newSite(t, "")
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s.take(body)
			got := summary(t, s.records("root"))
			if *update {
				if err := os.WriteFile(want, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, expected) {
				t.Errorf("%s:\n%s\nwant\n%s", file, got, expected)
			}
		})
	}
}

func summary(t *testing.T, records []gjson.Result) []byte {
	all := []map[string]any{}
	for _, r := range records {
		one := make(map[string]any)
		for _, field := range fields {
			if v := r.Get(field); v.Exists() && v.Type != gjson.Null && v.Raw != `""` && v.Raw != "false" && v.Raw != "{}" && v.Raw != "[]" {
				one[field] = json.RawMessage(v.Raw)
			}
		}
		all = append(all, one)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(all); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
