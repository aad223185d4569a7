package observe

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/streams"
)

// counted are the keys whose numbers tell what a call has used or cost.
var counted = regexp.MustCompile(`(?i)token|count$|searches|requests$|(^|_)cost(_|$)|seconds$|pages`)

// notUsed are the ends of the paths of such numbers that nothing has to read, by reason.
var notUsed = map[string][]string{
	"asks, and does not report": {
		"max_output_tokens", "max_tokens", "max_completion_tokens", "max_content_tokens", "budget_tokens", "maxTokens",
	},
	"is the number of a token, or of a choice": {"token_id", "tokenId"},
	"is a part of a count that is read, at the price of the whole": {
		"text_tokens", "video_tokens",
		"accepted_prediction_tokens", "rejected_prediction_tokens",
	},
	"is a sum of counts that are read":   {"tool_usage.image_gen.total_tokens"},
	"says again what another count says": {"input_tokens_details.cache_read_input_tokens"}, // Perplexity
	"is a part of a cost that is read": {
		"upstream_inference_prompt_cost", "upstream_inference_completions_cost",
		"upstream_inference_input_cost", "upstream_inference_output_cost",
		"usage.cost.input_cost", "usage.cost.output_cost", "usage.cost.tool_calls_cost",
	},
	// https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-fetch-tool
	"is free": {"server_tool_use.web_fetch_requests"},
	"adds up to the usage": {
		"x_groq.usage_breakdown.models.#.usage.prompt_tokens", "x_groq.usage_breakdown.models.#.usage.completion_tokens",
		"x_groq.usage_breakdown.models.#.usage.total_tokens",
	},
	"may be of any currency but at OpenRouter": {"usage.cost"},
}

// answers calls yield with each answer that we have: our fixtures of all vendors, and
// recorded traffic where there is some.
func answers(t *testing.T, yield func(name, provider string, d plugins.Dialect, contentType string, body []byte)) {
	t.Helper()
	var fixtures []string
	for _, pattern := range []string{"../*/testdata/*", "../*/testdata/*/*", "../../test/*/testdata/*.response.*"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		fixtures = append(fixtures, names...)
	}
	types := map[string]string{".json": jsonType, ".sse": sseType, ".ndjson": "application/x-ndjson"}
	for _, name := range fixtures {
		contentType := types[filepath.Ext(name)]
		if contentType == "" || strings.HasSuffix(name, ".want.json") || strings.HasSuffix(name, ".request.json") {
			continue
		}
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		provider := strings.Split(name, "/")[1]
		if provider == "chat" {
			provider = filepath.Base(filepath.Dir(name))
		}
		x := New(plugins.Unknown, provider, typed(contentType))
		x.Write(body)
		x.Close()
		yield(name, provider, x.Info().Dialect, contentType, body)
	}
	if cassettes == "" {
		return
	}
	for _, c := range readCassettes(t) {
		d, _ := c.dialect(t)
		yield(c.Name, c.Provider, d, c.ResponseHeaders["content-type"], c.body(t, c.ResponseFile))
	}
}

// objects are the JSON values of an answer.
func objects(contentType string, body []byte) (found []gjson.Result) {
	if strings.Contains(contentType, "amazon.eventstream") {
		for r := bytes.NewReader(body); ; {
			m, err := eventstream.NewDecoder().Decode(r, nil)
			if err != nil {
				return found
			}
			found = append(found, gjson.ParseBytes(m.Payload))
		}
	}
	events := streams.SSEData(body)
	switch {
	case strings.Contains(contentType, "ndjson"):
		events = bytes.Lines(body)
	case !strings.Contains(contentType, "event-stream"):
		return append(found, gjson.ParseBytes(body))
	}
	for data := range events {
		if gjson.ValidBytes(data) {
			found = append(found, gjson.ParseBytes(data))
		}
	}
	return found
}

// Every number that tells what a call has used is read, or is known and not needed.
func TestEveryStatedCountIsRead(t *testing.T) {
	read := 0
	answers(t, func(name, provider string, d plugins.Dialect, contentType string, body []byte) {
		table := lookup(d).responseOf(provider)
		for _, v := range objects(contentType, body) {
			walk(v, table, nil, func(path []string, n *node) {
				switch {
				case n != nil && n.field != none:
					read++
				case !ignored(strings.Join(path, ".")):
					t.Errorf("%s (%s of %q): nothing reads %s", name, d, provider, strings.Join(path, "."))
				}
			})
		}
	})
	if read == 0 {
		t.Error("no answer states a count")
	}
}

// walk visits the counted numbers within v, with the node of the table that names them.
func walk(v gjson.Result, n *node, path []string, visit func([]string, *node)) {
	isArray := v.IsArray()
	v.ForEach(func(key, v gjson.Result) bool {
		name := key.Str
		var child *node
		switch {
		case isArray && len(path) == 0:
			walk(v, n, path, visit) // an element of a stream that is an array
			return true
		case isArray:
			if name = "#"; n != nil {
				child = n.elem
			}
		case n != nil:
			child = n.child([]byte(name))
		}
		to := append(path[:len(path):len(path)], name)
		if v.Type == gjson.Number && counted.MatchString(name) {
			visit(to, child)
		} else if v.Type == gjson.JSON {
			walk(v, child, to, visit)
		}
		return true
	})
}

func ignored(path string) bool {
	for _, ends := range notUsed {
		for _, end := range ends {
			if path == end || strings.HasSuffix(path, "."+end) {
				return true
			}
		}
	}
	return false
}
