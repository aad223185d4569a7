package llmgateway

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The table of endpoints has each of them, with its methods.
func TestEveryEndpointIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/llm_gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| endpoint | |")
	table, _, _ = strings.Cut(table, "\n\n")
	documented := make(map[string]bool)
	for _, row := range strings.Split(table, "\n") {
		var methods []string
		afterPath := true
		for _, word := range regexp.MustCompile(`[A-Z]{3,}|/v[12]/[a-z0-9_{}/]+`).FindAllString(row, -1) {
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
	for path := range dialects {
		method := "POST"
		if path == realtimePath {
			method = "GET"
		}
		if !documented[method+" "+path] {
			t.Errorf("%s %s is not documented", method, path)
		}
	}
	for path, methods := range stateRoutes {
		for method := range methods {
			if !documented[method+" "+path] {
				t.Errorf("%s %s is not documented", method, path)
			}
		}
	}
}
