package llmquery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmquery"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// describe fetches the description.
func (s *site) describe() *description {
	s.t.Helper()
	response, text := s.do("GET", "/openapi.json", "", "")
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("/openapi.json: %d", response.StatusCode)
	}
	return newDescription(s.t, text.Raw)
}

func TestServesDescription(t *testing.T) {
	s := newSite(t)
	response, text := s.do("GET", "/openapi.json", "", "")
	if got := response.Header.Get("Content-Type"); got != "application/json" || text.Get("openapi").String() != "3.1.0" {
		t.Errorf("%s %.100s", got, text.Raw)
	}
	r, err := http.NewRequest("GET", s.url+"/openapi.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("If-None-Match", response.Header.Get("Etag"))
	again, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	again.Body.Close()
	if again.StatusCode != http.StatusNotModified || again.Header.Get("Cache-Control") == "" {
		t.Errorf("asked again: %d, Cache-Control %q", again.StatusCode, again.Header.Get("Cache-Control"))
	}
	if refused, _ := s.do("POST", "/openapi.json", "", ""); refused.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", refused.StatusCode)
	}
}

// operations are the operations of the description: method and path, by their
// pointers.
func (d *description) operations() map[string]string {
	operations := make(map[string]string)
	for path, item := range mapOf(d.at("#/paths")) {
		for method := range mapOf(item) {
			if method != "parameters" {
				operations["#/paths/"+strings.ReplaceAll(path, "/", "~1")+"/"+method] = strings.ToUpper(method) + " " + path
			}
		}
	}
	return operations
}

func TestDescribesRoutes(t *testing.T) {
	d := newSite(t).describe()
	described := make(map[string]string)
	ids := make(map[any]bool)
	for pointer, operation := range d.operations() {
		scope := ""
		if security := d.at(pointer + "/security").([]any); len(security) > 0 {
			scope = mapOf(security[0])["key"].([]any)[0].(string)
		}
		described[operation] = scope
		if id := d.at(pointer + "/operationId"); id == nil || ids[id] {
			t.Errorf("%s: operationId %v", operation, id)
		} else {
			ids[id] = true
		}
		if strings.Contains(operation, "{id}") != (d.at(pointer[:strings.LastIndex(pointer, "/")]+"/parameters/0/name") == "id") {
			t.Errorf("%s: its parameters are not those of the path", operation)
		}
	}
	if want := llmquery.Scopes(); !maps.Equal(described, want) {
		t.Errorf("described\n%v\nserved\n%v", described, want)
	}
}

// TestDescribesFilters holds that each filter schema takes what the endpoint
// applies: every group, field, operator and type of value, and no other.
func TestDescribesFilters(t *testing.T) {
	s := newSite(t)
	d := s.describe()
	for path, field := range map[string]string{
		bulk: "filter", legacy: "filter", "/v1/user/metrics/query": "filter", "/v1/user/metrics-overview/query": "filter",
		"/v1/session/query": "filter", "/v1/session/metrics/query": "filter", "/v1/dashboard/scores/query": "userFilter",
	} {
		t.Run(path, func(t *testing.T) {
			schema, _ := d.object(requestBody(path, "post"))
			schema, _ = d.object(schema + "/properties/" + field)
			applied := make(map[storage.Group]bool)
			for _, f := range storage.Fields() {
				leaf := leafOf(f, f.Kind.Operators()[0], sampleOf[f.Kind])
				if _, asked := applied[f.Group]; !asked {
					response, _ := s.do("POST", path, "root", fmt.Sprintf(`{%q:%s}`, field, leaf))
					applied[f.Group] = response.StatusCode == http.StatusOK && response.Header.Get("Service-Warnings") == ""
				}
				for op := storage.Equals; op <= storage.GT; op++ {
					for _, value := range []string{`"2026-11-20"`, `1`, `true`, `null`} {
						leaf := leafOf(f, op, value)
						_, err := storage.ParseFilter([]byte(leaf), f.Group)
						d.expect(t, schema, leaf, err == nil && applied[f.Group])
					}
				}
			}
			leaf := `{"request_response_rmt":{"cost":{"gte":1}}}`
			for filter, valid := range map[string]bool{
				`"all"`: true, `{}`: true, `"none"`: false, `[]`: false,
				`{"left":` + leaf + `,"operator":"or","right":"all"}`:                                           true,
				`{"left":{},"operator":"and","right":{"left":"all","operator":"and","right":` + leaf + `}}`:     true,
				`{"left":` + leaf + `,"operator":"xor","right":"all"}`:                                          false,
				`{"left":` + leaf + `,"operator":"or"}`:                                                         false,
				`{"request_response_rmt":{"cost":{"gte":1,"lte":2}}}`:                                           false,
				`{"request_response_rmt":{"cost":{"gte":1},"status":{"equals":200}}}`:                           false,
				`{"request_response_rmt":{"cost":{"gte":1}},"users_view":{"user_cost":{"gte":1}}}`:              false,
				`{"request_response_rmt":{"properties":{"a":{"equals":"1"},"b":{"equals":"1"}}}}`:               false,
				`{"request_response_rmt":{"price":{"gte":1}}}`:                                                  false,
				`{"left":"all","operator":"or","right":"all","request_response_rmt":{"cost":{"gte":1}}}`:        false,
				`{"left":"all","operator":"and","right":{"request_response_rmt":{"cost":{"gte":"1"}}}}`:         false,
				`{"left":"all","operator":"and","right":{"request_response_rmt":{"latency":{"contains":"1"}}}}`: false,
			} {
				if _, err := storage.ParseFilter([]byte(filter)); (err == nil) != valid {
					t.Fatalf("%s: %v", filter, err)
				}
				d.expect(t, schema, filter, valid)
			}
			groups, _ := d.object(schema + "/oneOf/1")
			for group := range mapOf(d.at(groups + "/properties")) {
				pointer, described := d.object(groups + "/properties/" + group)
				for name := range mapOf(described["properties"]) {
					if storage.LookupField(storage.Group(group), name) == nil {
						t.Errorf("%s: there is no field %s.%s", pointer, group, name)
					}
				}
			}
		})
	}
}

var sampleOf = map[storage.Kind]string{
	storage.Text: `"x"`, storage.Number: `1`, storage.Time: `"2026-11-20"`, storage.Boolean: `true`,
	storage.ContainsText: `"x"`, storage.PropertyKey: `"x"`,
}

func leafOf(f *storage.Field, op storage.Operator, value string) string {
	leaf := fmt.Sprintf(`{%q:%s}`, op, value)
	if f.Map {
		leaf = `{"some-name":` + leaf + `}`
	}
	if f.Name != "" {
		leaf = fmt.Sprintf(`{%q:%s}`, f.Name, leaf)
	}
	return fmt.Sprintf(`{%q:%s}`, f.Group, leaf)
}

func (d *description) expect(t *testing.T, schema, text string, valid bool) {
	t.Helper()
	if err := d.check(schema, "filter", valueOf(text)); (err == nil) != valid {
		t.Errorf("%s: %v, want valid = %t", text, err, valid)
	}
}

func valueOf(text string) (v any) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v
}

func requestBody(path, method string) string {
	return "#/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + method + "/requestBody/content/application~1json/schema"
}

// TestDescribesBodies holds that endpoints read every field that is described,
// within the bounds and choices that are, and with the default that is.
func TestDescribesBodies(t *testing.T) {
	s := newSite(t)
	s.recordVariety()
	d := s.describe()
	for pointer, operation := range d.operations() {
		method, path, _ := strings.Cut(operation, " ")
		ask := func(field, value string) (status int, answer gjson.Result) {
			full := fmt.Sprintf(`{"filter":"all",%q:%s}`, field, value)
			if field == "filter" {
				full = `{"filter":` + value + `}`
			}
			response, answer := s.do(method, strings.ReplaceAll(path, "{id}", uuid.NewString()), "root", full)
			return response.StatusCode, answer
		}
		reads := func(field, value, place string) bool {
			status, answer := ask(field, value)
			return status == http.StatusBadRequest && strings.HasPrefix(answer.Get("error").String(), place+":")
		}
		body, _ := d.object(pointer + "/requestBody/content/application~1json/schema")
		fields := mapOf(d.at(body + "/properties"))
		for name := range fields {
			property, schema := d.object(body + "/properties/" + name)
			if !reads(name, `[]`, name) {
				t.Errorf("%s does not read %s", operation, name)
			}
			for inner := range mapOf(schema["properties"]) {
				if name != "sort" && !reads(name, fmt.Sprintf(`{%q:[]}`, inner), name+"."+inner) {
					t.Errorf("%s does not read %s.%s", operation, name, inner)
				}
			}
			for bound, step := range map[string]float64{"minimum": -1, "maximum": 1} {
				n, ok := schema[bound].(float64)
				if !ok {
					continue
				}
				if status, answer := ask(name, fmt.Sprint(n)); status != http.StatusOK {
					t.Errorf("%s: %s %v: %s", operation, name, n, answer.Raw)
				}
				if !reads(name, fmt.Sprint(n+step), name) {
					t.Errorf("%s takes the %s %v", operation, name, n+step)
				}
			}
			if absent, ok := schema["default"]; ok {
				text, _ := json.Marshal(absent)
				_, with := ask(name, string(text))
				if _, without := ask("no such field", "0"); with.Raw != without.Raw {
					t.Errorf("%s: without %s it is not %s", operation, name, text)
				}
			}
			switch {
			case schema["enum"] != nil:
				_, answer := ask(name, `"no such choice"`)
				d.sameNames(t, property+"/enum", between(answer.Get("error").String(), "one of ", " is expected"))
			case name == "sort":
				_, answer := ask(name, `{"no such choice":"asc"}`)
				d.sameNames(t, property+"/properties", between(answer.Get("error").String(), "known are ", ")"))
			}
		}
		for _, name := range manualNames(t) {
			if _, described := fields[name]; !described && reads(name, `[]`, name) {
				t.Errorf("%s reads %s, which is not described", operation, name)
			}
		}
	}
}

// recordVariety records enough for defaults to make a difference.
func (s *site) recordVariety() {
	const day = 24 * 3_600_000
	j := s.journal("default")
	for i := range storage.Timestamp(60) {
		name := fmt.Sprint("v", i)
		r := &storage.Record{
			ID: uuid.Must(uuid.NewV7()), Org: "default", UserID: name, SessionID: name,
			CreatedAt: 1_790_000_000_000 + i*day/2, RespondedAt: 1_790_000_000_000 + i*day/2 + i*i,
			Cost: plugins.Known(int64(i * i * 1e6)),
		}
		if err := errors.Join(
			j.Append(r, &storage.Content{Inputs: map[string]string{"n": name}}),
			j.AppendFact(&storage.Fact{Org: "default", RequestID: r.ID, At: r.CreatedAt, Scores: map[string]float64{"quality": float64(i)}}),
		); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := j.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// manualNames are the names in the manual that could be fields.
func manualNames(t *testing.T) (names []string) {
	manual, err := os.ReadFile("../../docs/llm_query.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile("[`\"]([a-z]+[A-Za-z]*)[`\"]").FindAllSubmatch(manual, -1) {
		names = append(names, string(match[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func between(s, after, before string) string {
	_, s, _ = strings.Cut(s, after)
	s, _, _ = strings.Cut(s, before)
	return s
}

// sameNames compares a list with the names at a pointer.
func (d *description) sameNames(t *testing.T, pointer, list string) {
	t.Helper()
	described := slices.Collect(maps.Keys(mapOf(d.at(pointer))))
	choices, _ := d.at(pointer).([]any)
	for _, choice := range choices {
		described = append(described, choice.(string))
	}
	taken := strings.Split(list, ", ")
	slices.Sort(taken)
	slices.Sort(described)
	if !slices.Equal(taken, described) {
		t.Errorf("%s: taken are %q, described %q", pointer, taken, described)
	}
}

// TestAnswersAsDescribed holds that every answer is as described, nothing more
// and nothing less, and that the examples work.
func TestAnswersAsDescribed(t *testing.T) {
	s := newSite(t)
	d := s.describe()
	d.strict = true
	id := s.record("default", &storage.Record{
		Org: "default", UserID: "ada", SessionID: "s1", SessionName: "chat", Properties: map[string]string{"Service-Session-Id": "s1"},
		RespondedAt: 1_790_000_001_000, Latency: plugins.Known(1000), TimeToFirstToken: plugins.Known(200), Status: plugins.Known(200), Stream: true,
		Provider: "openai", Model: "m", RequestModel: "m", ResponseModel: "m", ModelOverride: "m", ResponseID: "r", Path: "/v1/responses", TargetURL: "https://localhost",
		Usage: plugins.Usage{
			Input: plugins.Known(100), Output: plugins.Known(20), CacheRead: plugins.Known(10), CacheWrite: plugins.Known(0),
			InputAudio: plugins.Known(1), OutputAudio: plugins.Known(1), Reasoning: plugins.Known(5),
		},
		Cost: plugins.Known(27_000), Referrer: "gateway", PromptID: "p", PromptVersion: "1", NodeID: "n", JobID: "j", CountryCode: "DE",
		TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7", Attempt: 1, CacheReferenceID: uuid.New(), Assets: []string{"a"},
	}, &storage.Content{Request: storage.Body{Type: "application/json", Data: []byte(`{}`)}, Inputs: map[string]string{"city": "Ulm"}}).String()
	s.record("default", &storage.Record{Org: "default", UserID: "bo", SessionID: "s2", AttemptOf: uuid.New()}, nil)
	s.record("default", &storage.Record{Org: "default", UserID: "bo", SessionID: "s2"}, nil)

	described := make(map[string]bool) // properties of answers
	statuses := make(map[string]bool)  // by operation
	ask := func(pointer, prefix, key, id, body string) (status int) {
		t.Helper()
		method, path, _ := strings.Cut(d.operations()[pointer], " ")
		response, answer := s.do(method, prefix+strings.ReplaceAll(path, "{id}", id), key, body)
		at := fmt.Sprintf("%s/responses/%d", pointer, response.StatusCode)
		statuses[at] = true
		at, _ = d.object(at)
		if err := d.check(at+"/content/application~1json/schema", "answer", valueOf(answer.Raw)); err != nil {
			t.Errorf("%s %s %.200s: %d %v", method, path, body, response.StatusCode, err)
		}
		if got := response.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s %s: Content-Type %q", method, path, got)
		}
		return response.StatusCode
	}
	// Scores, feedback and a tag first, so that the queries find them.
	pointers := slices.SortedFunc(maps.Keys(d.operations()), func(a, b string) int {
		return strings.Compare(llmquery.Scopes()[d.operations()[b]]+a, llmquery.Scopes()[d.operations()[a]]+b)
	})
	for _, pointer := range pointers {
		operation := d.operations()[pointer]
		for status := range mapOf(d.at(pointer + "/responses")) {
			at, _ := d.object(pointer + "/responses/" + status)
			d.properties(at+"/content/application~1json/schema", described)
		}
		if llmquery.Scopes()[operation] == "" {
			ask(pointer, "", "", "", "")
			continue
		}
		session := strings.Contains(operation, "/session/")
		known, unknown := id, uuid.NewString()
		if session {
			known = "s1"
		}
		if status := ask(pointer, "", "root", known, exampleOf(d, pointer)); status >= 300 {
			t.Errorf("%s: the example is answered with %d", operation, status)
		}
		ask(pointer, "", "root", known, `{"filter":"all","includeInputs":true,"limit":1000}`)
		ask(pointer, "", "root", known, `{"filter":7,"userFilter":7,"rating":7,"scores":7,"key":7,"tag":7}`)
		ask(pointer, "", "root", unknown, exampleOf(d, pointer))
		ask(pointer, "", "", known, exampleOf(d, pointer))
		ask(pointer, "", map[string]string{"query": "writer", "write": "reader"}[llmquery.Scopes()[operation]], known, exampleOf(d, pointer))
		ask(pointer, "", "root", known, strings.Repeat(" ", 1<<20+1))
		ask(pointer, "/slow", "slow", uuid.NewString(), exampleOf(d, pointer))
		ask(pointer, "/broken", "broken", uuid.NewString(), exampleOf(d, pointer))
	}
	for _, pointer := range pointers {
		for status := range mapOf(d.at(pointer + "/responses")) {
			if !statuses[pointer+"/responses/"+status] {
				t.Errorf("%s never answers %s", d.operations()[pointer], status)
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
	example := d.at(pointer + "/requestBody/content/application~1json/example")
	if example == nil {
		return `{"filter":"all","rating":true}`
	}
	text, err := json.Marshal(example)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestExamplesAreAsDescribed(t *testing.T) {
	d := newSite(t).describe()
	examples := 0
	for pointer, operation := range d.operations() {
		content := pointer + "/requestBody/content/application~1json"
		if example := d.at(content + "/example"); example != nil {
			examples++
			if err := d.check(content+"/schema", "body", example); err != nil {
				t.Errorf("%s: %v", operation, err)
			}
		}
	}
	if examples == 0 {
		t.Error("there are no examples")
	}
}

// TestChecker holds that the checker of this test finds what is wrong.
func TestChecker(t *testing.T) {
	d := newDescription(t, `{"type":"object","required":["n"],"properties":{"n":{"type":"integer","maximum":3},"s":{"enum":["a"]},
		"o":{"oneOf":[{"const":"all"},{"type":"object","maxProperties":0}]},"l":{"type":["array","null"],"items":{"format":"uuid"},"maxItems":1}}}`)
	d.root = map[string]any{"x": d.root}
	d.strict = true
	for text, valid := range map[string]bool{
		`{"n":1,"s":"a","o":{},"l":null}`: true, `{"n":3,"o":"all","l":["00000000-0000-0000-0000-000000000000"]}`: true,
		`{}`: false, `[]`: false, `{"n":4}`: false, `{"n":1.5}`: false, `{"n":"1"}`: false, `{"n":1,"s":"b"}`: false, `{"n":1,"more":1}`: false,
		`{"n":1,"o":"none"}`: false, `{"n":1,"o":{"a":1}}`: false, `{"n":1,"l":["a"]}`: false, `{"n":1,"l":[1,2]}`: false,
	} {
		d.expect(t, "#/x", text, valid)
	}
	if !reflect.DeepEqual(d.at("#/x/required"), []any{"n"}) {
		t.Error("pointers lead astray")
	}
}
