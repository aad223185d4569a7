package llmgateway

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// operations are what the description has, by method and path.
func operations(t *testing.T) map[string]gjson.Result {
	t.Helper()
	if !gjson.ValidBytes(description.Text()) {
		t.Fatal("the description is no JSON")
	}
	all := make(map[string]gjson.Result)
	gjson.GetBytes(description.Text(), "paths").ForEach(func(path, item gjson.Result) bool {
		item.ForEach(func(method, operation gjson.Result) bool {
			if method.Str != "parameters" {
				all[strings.ToUpper(method.Str)+" "+path.Str] = operation
			}
			return true
		})
		return true
	})
	return all
}

// The description has all operations that the gateway has, and no others.
func TestDescriptionHasTheOperations(t *testing.T) {
	var served []string
	for _, r := range new(Handler).Routes() {
		served = append(served, r.Method+" "+r.Path)
	}
	slices.Sort(served)
	if described := slices.Sorted(maps.Keys(operations(t))); !slices.Equal(described, served) {
		t.Errorf("described\n%s\nserved\n%s", strings.Join(described, "\n"), strings.Join(served, "\n"))
	}
}

// The table of endpoints has each operation.
func TestEveryOperationIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/llm_gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| endpoint | |")
	table, _, _ = strings.Cut(table, "\n\n")
	documented := make(map[string]bool)
	for row := range strings.SplitSeq(table, "\n") {
		var methods []string
		afterPath := true
		for _, word := range regexp.MustCompile(`\b[A-Z]{3,}\b|/v[12]/[a-z0-9_{}/.]+|/\.well-known/[a-z-]+`).FindAllString(row, -1) {
			if !strings.HasPrefix(word, "/") {
				if afterPath {
					methods, afterPath = nil, false
				}
				methods = append(methods, word)
				continue
			}
			afterPath = true
			for _, method := range methods {
				documented[method+" "+word] = true
			}
		}
	}
	for operation := range operations(t) {
		if !documented[operation] {
			t.Errorf("%s is not documented", operation)
		}
	}
}

// What each operation answers without a key, and to a request that has neither a body nor
// an id that is known, is as it is described, errors with their form.
func TestOperationsAnswerAsDescribed(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}, "raw": {hello}})
	var header []string // all that are described
	gjson.GetBytes(description.Text(), "components.parameters").ForEach(func(_, parameter gjson.Result) bool {
		if parameter.Get("in").Str == "header" {
			value := map[string]string{"boolean": "true"}[parameter.Get("schema.type").Str]
			switch parameter.Get("name").Str {
			case "Service-Request-Id":
				return true // an id is taken once
			case "Service-Properties":
				value = "{}"
			}
			header = append(header, parameter.Get("name").Str, value)
		}
		return true
	})
	ids := make(map[string]bool)
	for operation, described := range operations(t) {
		method, path, _ := strings.Cut(operation, " ")
		if id := described.Get("operationId").Str; id == "" || ids[id] {
			t.Errorf("%s: operationId %q", operation, id)
		} else {
			ids[id] = true
		}
		path = strings.NewReplacer("{id}", "unknown", "{item}", "unknown").Replace(path)
		for _, key := range []string{"", "Bearer k"} {
			resp, body := s.send(method, path, strings.NewReader("{}"), append([]string{"Authorization", key, "Content-Type", jsonType}, header...)...)
			if open := described.Get("security"); key == "" && resp.StatusCode != http.StatusUnauthorized && !open.Exists() && resp.StatusCode < 405 {
				t.Errorf("%s without a key: %d", operation, resp.StatusCode)
			}
			if strings.Contains(strings.Join(resp.Header["Service-Warnings"], " "), "no such control header") {
				t.Errorf("%s: a header that is described is not known: %s", operation, resp.Header["Service-Warnings"])
			}
			answer := described.Get("responses." + map[int]string{2: "200", 4: "4XX", 5: "5XX"}[resp.StatusCode/100])
			if ref := answer.Get("$ref").Str; ref != "" {
				answer = gjson.GetBytes(description.Text(), strings.ReplaceAll(strings.TrimPrefix(ref, "#/"), "/", "."))
			}
			contentType := gjson.Escape(resp.Header.Get("Content-Type"))
			if !answer.Exists() || !answer.Get("content."+contentType).Exists() {
				t.Errorf("%s: %d %s is not described", operation, resp.StatusCode, contentType)
			}
			if resp.StatusCode < 400 {
				continue
			}
			anthropic := strings.HasSuffix(answer.Get("content.application/json.schema.$ref").Str, "AnthropicError")
			if gjson.Get(body, "error.message").Str == "" || anthropic != (gjson.Get(body, "type").Str == "error") {
				t.Errorf("%s: %s", operation, body)
			}
		}
	}
}

func TestServesDescription(t *testing.T) {
	s := serve(t, nil)
	resp, body := s.send("GET", openAPIPath, nil, "Authorization", "")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != jsonType || gjson.Get(body, "openapi").Str != "3.1.0" {
		t.Errorf("%d %.100s", resp.StatusCode, body)
	}
	if again, _ := s.send("GET", openAPIPath, nil, "If-None-Match", resp.Header.Get("Etag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("asked again: %d", again.StatusCode)
	}
	if resp, _ := s.send("POST", openAPIPath, nil); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") == "" {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}
