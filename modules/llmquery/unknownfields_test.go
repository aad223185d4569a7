//go:build !race

package llmquery_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

var unknownFields = flag.Int("llmquery.bodies", 1000, "how many bodies TestUnknownFields sends")

// TestUnknownFields holds that no body is answered that has one field which its
// endpoint does not take there: of another name, of another spelling, or out of
// its place.
func TestUnknownFields(t *testing.T) {
	s := newSite(t)
	d := s.describe()
	random := rand.New(rand.NewPCG(1, 2))
	type target struct {
		method, path, schema string
	}
	var targets []target
	var names []string // of all fields anywhere
	for pointer, operation := range d.operations() {
		schema, object := d.object(pointer + jsonBody + "/schema")
		if object == nil {
			continue
		}
		method, path, _ := strings.Cut(operation, " ")
		id := s.record("default", &storage.Record{Org: "default", SessionID: "s1", Properties: map[string]string{"Service-Session-Id": "s1", "text": "text"}}, nil).String() // as bodies expect it
		if strings.Contains(path, "/session/") {
			id = "s1"
		}
		targets = append(targets, target{method, strings.ReplaceAll(path, "{id}", id), schema})
		for name := range mapOf(object["properties"]) {
			names = append(names, name)
			_, property := d.object(schema + "/properties/" + name)
			names = slices.AppendSeq(names, maps.Keys(mapOf(property["properties"])))
		}
	}
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.path, b.path) })
	slices.Sort(names)
	names = slices.Compact(names)

	s.record("default", &storage.Record{Org: "default", SessionID: "text"}, nil) // as bodies name it
	for range *unknownFields {
		target := targets[random.IntN(len(targets))]
		body := d.bodyOf(random, target.schema)
		if response, answer := s.do(target.method, target.path, "root", encode(body)); response.StatusCode >= 300 {
			t.Fatalf("%s: the body %s is answered with %d %s", target.path, encode(body), response.StatusCode, answer)
		}
		// The objects whose fields are described: the body, and those within.
		places := []string{""}
		for name := range body {
			if _, schema := d.object(target.schema + "/properties/" + name); schema["additionalProperties"] == false && schema["properties"] != nil {
				places = append(places, name)
			}
		}
		slices.Sort(places)
		place := places[random.IntN(len(places))]
		at, schema := body, target.schema
		if place != "" {
			at = mapOf(body[place])
			schema, _ = d.object(target.schema + "/properties/" + place)
		}
		known := mapOf(d.at(schema + "/properties"))
		name := strange(random, names)
		for known[name] != nil {
			name = strange(random, names)
		}
		at[name] = []any{1, "x", true, nil, "asc", map[string]any{}, []any{}}[random.IntN(7)]
		response, answer := s.do(target.method, target.path, "root", encode(body))
		if message := answer.Get("error").String(); response.StatusCode != http.StatusBadRequest || !strings.Contains(message, fmt.Sprintf("%q", name)) {
			t.Errorf("%s: the body %s is answered with %d %s", target.path, encode(body), response.StatusCode, answer)
		}
	}
}

// bodyOf makes a body with some of the fields that a schema describes.
func (d *description) bodyOf(random *rand.Rand, schema string) map[string]any {
	object := mapOf(d.at(schema))
	required, _ := object["required"].([]any)
	body := make(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(mapOf(object["properties"]))) {
		if !slices.Contains(required, any(name)) && random.IntN(2) == 0 {
			continue
		}
		if most, ok := object["maxProperties"].(float64); ok && len(body) == int(most) {
			break
		}
		pointer, property := d.object(schema + "/properties/" + name)
		switch {
		case name == "filter" || name == "userFilter":
			body[name] = "all"
		case name == "after": // it takes what an answer gave
		case name == "columns": // a table alone takes them
		case name == "groupBy":
			body[name] = "model"
		case name == "fields":
			body[name] = []any{"model"}
		case name == "scores" && slices.Contains(required, any(name)): // those of a sort have no names that are known
			body[name] = map[string]any{"quality": 1}
		case property["enum"] != nil:
			body[name] = property["enum"].([]any)[0]
		case name == "start" || name == "end":
			body[name] = "2026-11-20"
		case property["type"] == "object":
			body[name] = d.bodyOf(random, pointer)
		case property["type"] == "boolean":
			body[name] = random.IntN(2) == 0
		case property["type"] == "string":
			body[name] = "text"
		default:
			body[name] = 1
		}
	}
	if body["timezone"] != nil {
		body["timezone"] = "Europe/Berlin"
		for _, difference := range []string{"timezoneDifference", "timeZoneDifference", "timeZoneDifferenceMinutes"} {
			delete(body, difference) // one of the two is enough
		}
	}
	return body
}

// strange is a name that may be known somewhere, or one that is nearly so.
func strange(random *rand.Rand, names []string) string {
	name := names[random.IntN(len(names))]
	i := random.IntN(len(name))
	switch random.IntN(7) {
	case 0:
		return uuid.NewString()
	case 1:
		return name[:i] + name[i+1:]
	case 2:
		return name[:i] + name[i:i+1] + name[i:]
	case 3:
		return strings.ToUpper(name[:1]) + name[1:]
	case 4:
		return name[:i] + "_" + name[i:]
	case 5:
		return name + " "
	}
	return name
}

func encode(body map[string]any) string {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(text)
}
