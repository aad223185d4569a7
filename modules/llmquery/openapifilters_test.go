//go:build !race

package llmquery_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/storage"
)

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
			schema, _ := d.object("#/paths/" + strings.ReplaceAll(path, "/", "~1") + "/post" + jsonBody + "/schema")
			schema, _ = d.object(schema + "/properties/" + field)
			applied := make(map[storage.Group]bool)
			for _, f := range storage.Fields() {
				leaf := leafOf(f, f.Kind.Operators()[0], sampleOf[f.Kind])
				if _, asked := applied[f.Group]; !asked {
					response, _ := s.do("POST", path, "root", fmt.Sprintf(`{%q:%s}`, field, leaf))
					applied[f.Group] = response.StatusCode == http.StatusOK && response.Header.Get("Service-Warnings") == ""
				}
				for op := storage.Equals; op <= storage.IsNull; op++ {
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
