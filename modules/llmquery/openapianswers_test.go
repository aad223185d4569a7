package llmquery_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmquery"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// TestAnswersAsDescribed holds that every answer is as described, nothing more
// and nothing less, and that the examples work.
func TestAnswersAsDescribed(t *testing.T) {
	s := newSite(t)
	d := s.describe()
	d.strict = true
	usage := plugins.Usage{
		Input: plugins.Known(100), Output: plugins.Known(20), CacheRead: plugins.Known(10), CacheWrite: plugins.Known(0),
		InputAudio: plugins.Known(1), OutputAudio: plugins.Known(1), Reasoning: plugins.Known(5),
	}
	prices := catalog.Default()
	id := s.record("default", &storage.Record{
		Org: "default", UserID: "ada", SessionID: "s1", SessionName: "chat", Properties: map[string]string{"Service-Session-Id": "s1"},
		Dialect: plugins.Chat, RespondedAt: 1_790_000_001_000, Latency: plugins.KnownDuration(1000 * time.Millisecond), TimeToFirstToken: plugins.KnownDuration(200 * time.Millisecond), Status: plugins.Known(200), Stream: true,
		Provider: "anthropic", Model: "m", RequestModel: "m", ResponseModel: "claude-sonnet-4-6", ModelOverride: "m", ResponseID: "r", Finish: "stop", ErrorType: "e", Path: "/v1/responses", TargetURL: "https://localhost",
		Usage: usage, Cost: prices.Cost("anthropic", "claude-sonnet-4-6", usage, catalog.Conditions{}), PriceVersion: prices.Version(), Referrer: "gateway", PromptID: "p", PromptVersion: "1", NodeID: "n", JobID: "j", CountryCode: "DE",
		TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7", Attempt: 1, CacheReferenceID: uuid.New(), Assets: []string{"a"},
	}, &storage.Content{
		Request:  storage.Body{Type: "application/json", Data: []byte(`{}`)},
		Response: storage.Body{Type: "application/json", Data: []byte(`{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"look","arguments":"{}"}}]}}]}`)},
		Inputs:   map[string]string{"city": "Ulm"},
	}).String()
	s.record("default", &storage.Record{Org: "default", UserID: "bo", SessionID: "s2", AttemptOf: uuid.New()}, nil)
	s.record("default", &storage.Record{Org: "default", UserID: "bo", SessionID: "s2"}, nil)
	s.record("default", &storage.Record{Org: "default", UserID: "bo", RootID: uuid.New()}, nil)

	operations, scopes := d.operations(), llmquery.Scopes()
	described := make(map[string]bool) // properties of answers
	answered := make(map[string]bool)  // responses
	ask := func(pointer, prefix, key, id, body string) (status int) {
		t.Helper()
		method, path, _ := strings.Cut(operations[pointer], " ")
		response, answer := s.do(method, prefix+strings.NewReplacer("{id}", id, "{name}", id).Replace(path), key, body)
		at := fmt.Sprintf("%s/responses/%d", pointer, response.StatusCode)
		answered[at] = true
		if tag := response.Header.Get("ETag"); tag != "" && method == "POST" {
			again := s.again(strings.TrimPrefix(response.Request.URL.String(), s.url), key, body, tag)
			answered[fmt.Sprintf("%s/responses/%d", pointer, again.StatusCode)] = true
		}
		at, _ = d.object(at)
		values := []gjson.Result{answer}
		contentType := response.Header.Get("Content-Type")
		if contentType == "application/x-ndjson" {
			values = nil
			for line := range strings.Lines(answer.Raw) {
				values = append(values, gjson.Parse(line))
			}
		}
		for _, value := range values {
			if err := d.check(at+"/content/"+strings.ReplaceAll(contentType, "/", "~1")+"/schema", "answer", valueOf(value.Raw)); err != nil {
				t.Errorf("%s %s %.200s: %d %s %v", method, path, body, response.StatusCode, contentType, err)
			}
		}
		return response.StatusCode
	}
	// Those that write first, so that the queries find scores and a tag.
	pointers := slices.SortedFunc(maps.Keys(operations), func(a, b string) int {
		return -cmp.Compare(scopes[operations[a]], scopes[operations[b]])
	})
	for _, pointer := range pointers {
		operation := operations[pointer]
		for status := range mapOf(d.at(pointer + "/responses")) {
			at, _ := d.object(pointer + "/responses/" + status)
			for contentType := range mapOf(d.at(at + "/content")) {
				d.properties(at+"/content/"+strings.ReplaceAll(contentType, "/", "~1")+"/schema", described)
			}
		}
		if scopes[operation] == "" {
			ask(pointer, "", "", "", "")
			continue
		}
		if d.at(pointer+"/responses/200/content/text~1event-stream") != nil { // TestTail follows it
			answered[pointer+"/responses/200"] = true
			ask(pointer, "", "", "", "")
			ask(pointer, "", "writer", "", "")
			operations[pointer] += "?filter=7"
			ask(pointer, "", "root", "", "")
			continue
		}
		known, unknown := id, uuid.NewString()
		if strings.Contains(operation, "/session/") {
			known = "s1"
		}
		if strings.Contains(operation, "/view") {
			s.do("PUT", "/v1/view/"+known, "root", `{"screen":"users","state":""}`)
		}
		if status := ask(pointer, "", "root", known, exampleOf(d, pointer)); status >= 300 {
			t.Errorf("%s: the example is answered with %d", operation, status)
		}
		ask(pointer, "", "root", known, `{}`)
		ask(pointer, "", "root", known, `{"sessionId":"`+unknown+`"}`)
		ask(pointer, "", "root", known, `{"filter":"all","includeInputs":true,"includePreview":true,"limit":1000}`)
		ask(pointer, "", "root", known, `{"filter":7,"userFilter":7,"rating":7,"scores":7,"key":7,"tag":7}`)
		ask(pointer, "", "root", known, `{"key":"Reviewer","value":"ada","expected":"somebody else"}`)
		ask(pointer, "", "root", unknown, exampleOf(d, pointer))
		ask(pointer, "", "", known, exampleOf(d, pointer))
		ask(pointer, "", map[string]string{"metrics": "writer", "write": "reader"}[scopes[operation]], known, exampleOf(d, pointer))
		ask(pointer, "", "root", known, strings.Repeat(" ", 1<<20+1))
		ask(pointer, "/slow", "slow", unknown, exampleOf(d, pointer))
		ask(pointer, "/broken", "broken", unknown, exampleOf(d, pointer))
	}
	for _, pointer := range pointers {
		for status := range mapOf(d.at(pointer + "/responses")) {
			if !answered[pointer+"/responses/"+status] && status != "429" { // TestTooManyQueries asks for those
				t.Errorf("%s never answers %s", operations[pointer], status)
			}
		}
	}
	for property := range described {
		if !d.seen[property] {
			t.Errorf("%s: never answered", property)
		}
	}
}

// exampleOf is the example of an operation's body, or one made up.
func exampleOf(d *description, pointer string) string {
	example := d.at(pointer + jsonBody + "/example")
	body, _ := d.object(pointer + jsonBody + "/schema")
	switch {
	case example == nil && d.at(body+"/properties/rating") != nil:
		return `{"rating":true}`
	case example == nil:
		return `{}`
	}
	text, err := json.Marshal(example)
	if err != nil {
		panic(err)
	}
	return string(text)
}
