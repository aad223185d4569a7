package llmquery_test

import (
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/uuid"
)

var unknownFields = flag.Int("llmquery.bodies", 1000, "how many bodies TestUnknownFields sends")

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
		case name == "policy":
			body[name] = []any{"openai/gpt-5-mini"}
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
