//go:build !race

package standard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// said is in the question, in the answer and in the inputs of a call.
const said = "canary of a conversation"

// contentLeaves are filters that are true of the call alone that has the canary.
var contentLeaves = []string{
	`{"request_response_rmt":{"request_body":{"contains":"` + said + `"}}}`,
	`{"request_response_rmt":{"response_body":{"contains":"` + said + `"}}}`,
	`{"request":{"prompt":{"contains":"` + said + `"}}}`,
	`{"response":{"body_completion":{"contains":"` + said + `"}}}`,
	`{"values":{"question":{"contains":"` + said + `"}}}`,
}

// questions are bodies of queries that ask for as much content as there is, and for what
// tells of content.
func questions() (open, telling []string) {
	filters := []string{`"all"`}
	for _, leaf := range contentLeaves {
		filters = append(filters, leaf, `{"left":"all","operator":"and","right":`+leaf+`}`)
	}
	for i, filter := range filters {
		for _, more := range []string{
			``, `,"includeContent":true`, `,"includeInputs":true`, `,"includePreview":true`, `,"includeContent":true,"includePreview":true`,
			`,"format":"csv"`, `,"format":"ndjson","includeContent":true`, `,"fields":["model"]`, `,"sessionId":"kept"`,
		} {
			q := `{"filter":` + filter + more + `}`
			if i == 0 {
				open = append(open, q)
			} else {
				telling = append(telling, q, strings.Replace(q, `"filter"`, `"userFilter"`, 1))
			}
		}
	}
	return open, telling
}

// A viewer sees what calls cost, and nothing of what was said, whichever route the viewer asks,
// with a key or in the dashboard.
func TestViewersSeeNoContent(t *testing.T) {
	s := serve(t)
	call := `{"model":"echo/echo-1","input":"` + said + `"}`
	if a := s.send("POST", "/v1/responses", "walker-root", jsonType, []byte(call), "Service-Prompt-Input-question", said, "Service-Session-Id", "viewed"); !strings.Contains(a.body, said) {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.flush()
	_, found, _ := strings.Cut(s.send("POST", "/v1/request/query", "walker-root", jsonType, []byte(`{"filter":`+contentLeaves[0]+`}`)).body, `"request_id":"`)
	id, _, ok := strings.Cut(found, `"`)
	if !ok {
		t.Fatal("the call is not found")
	}
	s.kept["/v1/request"] = id
	root, viewer := s.logIn("walker-root"), s.logIn("walker-viewer")
	open, telling := questions()
	told, seen := 0, 0 // answers with content to others, and without content to the viewer
	for _, r := range routes(t) {
		if r.Socket || strings.HasSuffix(r.Path, "/tail") {
			continue
		}
		asks := r.handler == "llm_query" || r.handler == "llm_ui"
		var bodies []string
		switch {
		case r.Method == http.MethodGet:
			bodies = []string{""}
		case r.takesBody() && asks:
			bodies = slices.Concat(open, telling)
		case r.takesBody():
			bodies = open[:1]
		}
		for i, body := range bodies {
			a := s.send(r.Method, s.path(r), "walker-viewer", jsonType, []byte(body), viewer...)
			if strings.Contains(a.body, said) {
				t.Errorf("%s tells a viewer what was said, asked with %s", r, body)
			}
			if a.status < 400 && i >= len(open) { // the answer tells whether it was said
				t.Errorf("%s answers a viewer %s: %d %s", r, body, a.status, a.body)
			}
			if a.status == http.StatusOK && asks {
				seen++
			}
			if i < len(open) && strings.Contains(s.send(r.Method, s.path(r), "walker-root", jsonType, []byte(body), root...).body, said) {
				told++
			}
		}
	}
	if told < 6 || seen < 30 {
		t.Errorf("%d answers to others had content, and a viewer got %d: the walk proves nothing", told, seen)
	}
	for _, path := range []string{"/v1/request/tail", dashboard + "/v1/request/tail"} {
		for _, leaf := range contentLeaves[:2] {
			if a := s.send("GET", path+"?filter="+url.QueryEscape(leaf), "walker-viewer", jsonType, nil, viewer...); a.status != http.StatusForbidden {
				t.Errorf("%s lets a viewer follow what is said: %d %s", path, a.status, a.body)
			}
		}
	}
	a := s.send("POST", "/v1/request/query-clickhouse", "walker-viewer", jsonType, []byte(`{"filter":{"request_response_rmt":{"session_id":{"equals":"viewed"}}}}`))
	if a.status != http.StatusOK || !strings.Contains(a.body, id) || !strings.Contains(a.body, `"request_body":null`) {
		t.Errorf("a viewer sees no metrics: %d %s", a.status, a.body)
	}
}
