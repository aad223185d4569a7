package llmquery_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// What was said of a request can be taken back.
func TestScoresAreRemoved(t *testing.T) {
	s := newSite(t)
	id := s.record("default", &storage.Record{Org: "default"}, nil)
	path := "/v1/request/" + id.String()
	s.do("POST", path+"/score", "writer", `{"scores":{"a/b c":0.75,"helpful":true}}`)
	s.do("POST", path+"/feedback", "writer", `{"rating":true}`)
	for range 2 {
		for _, name := range []string{"a%2Fb%20c", "service-score-feedback"} {
			if response, _ := s.do("DELETE", path+"/score/"+name, "writer", ""); response.StatusCode != http.StatusOK {
				t.Fatal(response.Status)
			}
		}
	}
	if response, _ := s.do("DELETE", path+"/score/helpful", "reader", ""); response.StatusCode != http.StatusForbidden {
		t.Errorf("a key without the scope: %s", response.Status)
	}
	_, one := s.do("GET", path, "root", "")
	if got := one.Get("data.scores").Raw; got != `{"helpful":1}` {
		t.Errorf("the scores are %s", got)
	}
	if got := one.Get("data.feedback_rating").Raw; got != "null" {
		t.Errorf("the rating is %s", got)
	}
}

// TestAnnotations holds that what is learned later is in force for the next query, and
// that learning it twice changes nothing.
func TestAnnotations(t *testing.T) {
	s := newSite(t)
	id := s.record("default", &storage.Record{
		Org: "default", SessionID: "s1", Properties: map[string]string{"Service-Session-Id": "s1"},
	}, nil)
	path := "/v1/request/" + id.String()
	for range 2 {
		for _, write := range []struct {
			method, path, body string
			status             int
		}{
			{"POST", path + "/score", `{"scores":{"accuracy":0.75,"helpful":true}}`, http.StatusCreated},
			{"POST", path + "/feedback", `{"rating":true}`, http.StatusOK},
			{"PUT", path + "/property", `{"key":"Reviewer","value":"bo"}`, http.StatusOK},
			{"POST", "/v1/session/s1/tag", `{"tag":"gold"}`, http.StatusOK},
			{"POST", "/v1/session/s1/feedback", `{"rating":false}`, http.StatusOK},
		} {
			response, answer := s.do(write.method, write.path, "writer", write.body)
			if response.StatusCode != write.status || answer.Raw != `{"data":null,"error":null}` {
				t.Fatalf("%s %s: %d %s", write.method, write.path, response.StatusCode, answer.Raw)
			}
		}
	}
	_, one := s.do("GET", path, "root", "")
	for field, want := range map[string]string{
		"data.scores.accuracy":                     "0.75",
		"data.scores.helpful":                      "1",
		"data.scores.service-score-feedback":       "1",
		"data.feedback_rating":                     "true",
		"data.properties.Reviewer":                 `"bo"`,
		"data.properties.Service-Session-Id":       `"s1"`,
		"data.properties.Service-Session-Feedback": `"0"`,
	} {
		if got := one.Get(field).Raw; got != want {
			t.Errorf("%s = %s, want %s", field, got, want)
		}
	}
	if _, tag := s.do("GET", "/v1/session/s1/tag", "root", ""); tag.Get("data").String() != "gold" {
		t.Errorf("tag: %s", tag.Raw)
	}
	for filter, found := range map[string]bool{
		`{"request_response_rmt":{"scores":{"accuracy":{"gte":0.75}}}}`:              true,
		`{"request_response_rmt":{"scores":{"accuracy":{"gt":0.75}}}}`:               false,
		`{"request_response_rmt":{"service-score-feedback":{"equals":true}}}`:        true,
		`{"request_response_rmt":{"property_key":{"equals":"Reviewer"}}}`:            true,
		`{"request_response_rmt":{"search_properties":{"Reviewer":{"equals":"x"}}}}`: false,
	} {
		if _, answer := s.do("POST", bulk, "root", `{"isScored":true,"filter":`+filter+`}`); (answer.Get("data.#").Int() == 1) != found {
			t.Errorf("%s finds %s", filter, answer.Get("data.#.request_id").Raw)
		}
	}
	_, sessions := s.do("POST", "/v1/session/query", "root", `{"filter":{"sessions_request_response_rmt":{"session_tag":{"equals":"gold"}}}}`)
	if sessions.Get("data.#.session_id").Raw != `["s1"]` {
		t.Errorf("sessions with the tag: %s", sessions.Raw)
	}
	_, scores := s.do("POST", "/v1/dashboard/scores/query", "root", `{"dbIncrement":"day","userFilter":"all"}`)
	if got := scores.Get("data.#.score_key").Raw; got != `["accuracy","helpful","service-score-feedback"]` {
		t.Errorf("scores: %s", scores.Raw)
	}
}

func TestRefusedAnnotations(t *testing.T) {
	s := newSite(t)
	id := s.record("default", &storage.Record{Org: "acme", SessionID: "theirs", Properties: map[string]string{"Service-Session-Id": "theirs"}}, nil)
	own := "/v1/request/" + s.record("default", &storage.Record{Org: "default"}, nil).String()
	for name, tc := range map[string]struct {
		method, path, key, body string
		status                  int
	}{
		"another organisation's request": {"POST", "/v1/request/" + id.String() + "/score", "root", `{"scores":{"a":1}}`, 404},
		"another organisation's session": {"POST", "/v1/session/theirs/tag", "root", `{"tag":"x"}`, 404},
		"unknown request":                {"PUT", "/v1/request/" + uuid.NewString() + "/property", "root", `{"key":"a","value":"b"}`, 404},
		"no id":                          {"POST", "/v1/request/1/feedback", "root", `{"rating":true}`, 404},
		"the public":                     {"POST", "/public" + own + "/score", "", `{"scores":{"a":1}}`, 401},
		"text score":                     {"POST", own + "/score", "root", `{"scores":{"a":"1"}}`, 400},
		"no scores":                      {"POST", own + "/score", "root", `{}`, 400},
		"scores in an array":             {"POST", own + "/score", "root", `{"scores":[1]}`, 400},
		"feedback as a score":            {"POST", own + "/score", "root", `{"scores":{"service-score-feedback":1}}`, 400},
		"endless score":                  {"POST", own + "/score", "root", `{"scores":{"a":1e999}}`, 400},
		"rating of a kind":               {"POST", own + "/feedback", "root", `{"rating":1}`, 400},
		"no rating":                      {"POST", own + "/feedback", "root", `{}`, 400},
		"property without a name":        {"PUT", own + "/property", "root", `{"value":"b"}`, 400},
		"property without a value":       {"PUT", own + "/property", "root", `{"key":"a"}`, 400},
		"long score name":                {"POST", own + "/score", "root", `{"scores":{"` + strings.Repeat("n", 257) + `":1}}`, 400},
		"long property name":             {"PUT", own + "/property", "root", `{"key":"` + strings.Repeat("n", 257) + `","value":""}`, 400},
		"long property value":            {"PUT", own + "/property", "root", `{"key":"k","value":"` + strings.Repeat("n", 4097) + `"}`, 400},
		"session by property":            {"PUT", own + "/property", "root", `{"key":"Service-Session-Id","value":"x"}`, 400},
		"session by any letter case":     {"PUT", own + "/property", "root", `{"key":"service-session-ID","value":"x"}`, 400},
		"session name by property":       {"PUT", own + "/property", "root", `{"key":"Service-Session-Name","value":"x"}`, 400},
		"unknown field":                  {"POST", own + "/feedback", "root", `{"rating":true,"score":1}`, 400},
		"duplicate score":                {"POST", own + "/score", "root", `{"scores":{"a":1,"a":2}}`, 400},
		"null score":                     {"POST", own + "/score", "root", `{"scores":{"a":null}}`, 400},
		"long tag":                       {"POST", "/v1/session/theirs/tag", "acme", `{"tag":"` + strings.Repeat("n", 4097) + `"}`, 400},
		"tag of a kind":                  {"POST", "/v1/session/theirs/tag", "acme", `{"tag":1}`, 400},
	} {
		t.Run(name, func(t *testing.T) {
			if response, answer := s.do(tc.method, tc.path, tc.key, tc.body); response.StatusCode != tc.status || answer.Get("error").String() == "" {
				t.Errorf("%d %s, want %d", response.StatusCode, answer.Raw, tc.status)
			}
		})
	}
}

// TestAnnotationsAreBounded holds that the API adds no more to a request than
// headers can: each later write of a store pays for the size of its records.
func TestAnnotationsAreBounded(t *testing.T) {
	s := newSite(t)
	path := "/v1/request/" + s.record("default", &storage.Record{Org: "default"}, nil).String()
	scores := func(from, to int) string {
		m := make(map[string]int)
		for i := from; i < to; i++ {
			m[fmt.Sprint("score", i)] = i
		}
		return encode(map[string]any{"scores": m})
	}
	for _, write := range []struct {
		method, path, body string
		status             int
		message            string
	}{
		{"POST", "/score", scores(0, 101), 400, "at most 100 scores"},
		{"POST", "/score", scores(0, 60), 201, ""},
		{"POST", "/score", scores(50, 100), 201, ""},
		{"POST", "/score", scores(99, 101), 400, "at most 100 scores, and would have 101"},
		{"POST", "/score", scores(0, 1), 201, ""},
		{"PUT", "/property", `{"key":"kept","value":"` + strings.Repeat("v", 4096) + `"}`, 200, ""},
	} {
		response, answer := s.do(write.method, path+write.path, "root", write.body)
		if response.StatusCode != write.status || !strings.Contains(answer.Get("error").String(), write.message) {
			t.Errorf("%.60s: %d %.200s", write.body, response.StatusCode, answer.Raw)
		}
	}
	full := make(map[string]string)
	for i := range 100 {
		full[fmt.Sprint("p", i)] = "v"
	}
	path = "/v1/request/" + s.record("default", &storage.Record{Org: "default", Properties: full}, nil).String() + "/property"
	if response, answer := s.do("PUT", path, "root", `{"key":"p","value":"v"}`); response.StatusCode != 400 || !strings.Contains(answer.Get("error").String(), "at most 100 properties") {
		t.Errorf("one property more: %d %s", response.StatusCode, answer.Raw)
	}
	if response, answer := s.do("PUT", path, "root", `{"key":"p1","value":"w"}`); response.StatusCode != 200 {
		t.Errorf("another value: %d %s", response.StatusCode, answer.Raw)
	}
}

// TestExpectedProperty holds that of many who change what they have read, one does, and the
// others are told of it.
func TestExpectedProperty(t *testing.T) {
	s := newSite(t)
	id := s.record("default", &storage.Record{Org: "default"}, nil).String()
	set := func(value, expected string) int {
		response, _ := s.do("PUT", "/v1/request/"+id+"/property", "root", encode(map[string]any{"key": "Comment", "value": value, "expected": expected}))
		return response.StatusCode
	}
	if status := set("mine", "theirs"); status != http.StatusConflict {
		t.Errorf("a value that the property does not have: %d", status)
	}
	statuses := make(chan int)
	for i := range 8 {
		go func() { statuses <- set(fmt.Sprint("value ", i), "") }()
	}
	count := make(map[int]int)
	for range 8 {
		count[<-statuses]++
	}
	if count[http.StatusOK] != 1 || count[http.StatusConflict] != 7 {
		t.Errorf("of 8 who expect no value: %v", count)
	}
	if response, answer := s.do("PUT", "/v1/request/"+id+"/property", "root", `{"key":"Comment","value":"v","expected":7}`); response.StatusCode != http.StatusBadRequest {
		t.Errorf("a number: %d %s", response.StatusCode, answer.Raw)
	}
}
