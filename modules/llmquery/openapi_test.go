package llmquery_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/modules/llmquery"
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

// jsonBody leads from an operation to what it says of its body.
const jsonBody = "/requestBody/content/application~1json"

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
		_, parameter := d.object(pointer + "/parameters/0")
		if strings.Contains(operation, "{id}") != (parameter["name"] == "id") {
			t.Errorf("%s: its parameters are not those of the path", operation)
		}
	}
	if want := llmquery.Scopes(); !maps.Equal(described, want) {
		t.Errorf("described\n%v\nserved\n%v", described, want)
	}
}

// An operator that a kind of fields takes is described, and no other.
func TestDescribesOperators(t *testing.T) {
	_, described := newSite(t).do("GET", "/openapi.json", "", "")
	for kind, schema := range map[storage.Kind]string{
		storage.Text: "TextOperators", storage.Number: "NumberOperators", storage.Time: "TimestampOperators",
		storage.Boolean: "BooleanOperators", storage.ContainsText: "ContentOperators", storage.PropertyKey: "PropertyKeyOperators",
	} {
		properties := described.Get("components.schemas." + schema + ".properties").Map()
		var taken []string
		for _, operator := range kind.Operators() {
			taken = append(taken, operator.String())
		}
		if names := slices.Sorted(maps.Keys(properties)); !slices.Equal(names, slices.Sorted(slices.Values(taken))) {
			t.Errorf("%s describes %q, %s fields take %q", schema, names, kind, taken)
		}
	}
}

func TestExamplesAreAsDescribed(t *testing.T) {
	d := newSite(t).describe()
	examples := 0
	for pointer, operation := range d.operations() {
		content := pointer + jsonBody
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
