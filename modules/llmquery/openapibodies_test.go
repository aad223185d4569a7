//go:build !race

package llmquery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/storagetest"
)

// TestDescribesBodies holds that endpoints read every field that is described,
// within the bounds and choices that are, and with the default that is.
func TestDescribesBodies(t *testing.T) {
	s := newSite(t)
	s.recordVariety()
	d := s.describe()
	for pointer, operation := range d.operations() {
		method, path, _ := strings.Cut(operation, " ")
		if method == http.MethodGet {
			continue // has no body, and may answer for ever
		}
		body, _ := d.object(pointer + jsonBody + "/schema")
		ask := func(field, value string) (status int, answer gjson.Result) {
			members := map[string]json.RawMessage{}
			required, _ := d.at(body + "/required").([]any)
			for name, value := range map[string]string{"filter": `"all"`, "sessionId": `"v0"`} {
				if slices.Contains(required, any(name)) {
					members[name] = json.RawMessage(value)
				}
			}
			if field != "" {
				members[field] = json.RawMessage(value)
			}
			full := string(must(json.Marshal(members)))
			response, answer := s.do(method, strings.ReplaceAll(path, "{id}", uuid.NewString()), "root", full)
			return response.StatusCode, answer
		}
		reads := func(field, value, place string) bool {
			status, answer := ask(field, value)
			return status == http.StatusBadRequest && strings.HasPrefix(answer.Get("error").String(), place+":")
		}
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
				if _, without := ask("", ""); with.Raw != without.Raw {
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
			Cost: plugins.KnownCost(plugins.Nanodollars(i * i * 1e6)),
		}
		if err := errors.Join(
			j.Append(r, storagetest.Kept(r, &storage.Content{Inputs: map[string]string{"n": name}})),
			j.AppendAnnotation(&storage.Annotation{Org: "default", RequestID: r.ID, At: r.CreatedAt, Scores: map[string]float64{"quality": float64(i)}}),
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
	manual, err := os.ReadFile("../../docs/api.md")
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

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
