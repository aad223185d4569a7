package llmcontrol_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// Keys that administer are created, listed, read and ended in OpenAI's shapes, by the
// administrators of their organisation alone.
func TestAdminKeys(t *testing.T) {
	s := newSite(t)
	const path = "/v1/organization/admin_api_keys"
	ok := func(key, method, path, body string) gjson.Result {
		t.Helper()
		status, answer := s.as(key, method, path, body)
		if status != http.StatusOK {
			t.Fatalf("%s %s: %d %s", method, path, status, answer.Raw)
		}
		return answer
	}
	if got := ok("acme-admin", "GET", path, "").Raw; got != `{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}` {
		t.Errorf("without keys: %s", got)
	}
	s.must("acme-admin", "POST", "/v1/keys", `{"name":"agents","scopes":["gateway"]}`)
	both := s.must("acme-admin", "POST", "/v1/keys", `{"name":"both","scopes":["query","admin"]}`).Get("id").Str
	created := ok("acme-admin", "POST", path, `{"name":"terraform","expires_in_seconds":3600}`)
	id, value := created.Get("id").Str, created.Get("value").Str
	if created.Get("object").Str != "organization.admin_api_key" || created.Get("expires_at").Int()-created.Get("created_at").Int() != 3600 ||
		created.Get("redacted_value").Str != "weir_****"+value[len(value)-4:] || created.Get("owner.type").Str != "user" {
		t.Error(created.Raw)
	}
	if status, answer := s.call(value, "echo/echo-1"); status != http.StatusForbidden {
		t.Errorf("a key that administers called a model: %d %s", status, answer.Raw)
	}
	ids := func(answer gjson.Result) (list string) {
		for _, k := range answer.Get("data").Array() {
			list += k.Get("id").Str + " "
			if k.Get("value").Exists() {
				t.Errorf("a list tells a secret: %s", k.Raw)
			}
		}
		return strings.TrimSpace(list)
	}
	if got := ids(ok(value, "GET", path, "")); got != both+" "+id {
		t.Errorf("the list is %q", got)
	}
	first := ok(value, "GET", path+"?order=desc&limit=1", "")
	if ids(first) != id || !first.Get("has_more").Bool() || first.Get("first_id").Str != id || first.Get("last_id").Str != id {
		t.Errorf("the first page is %s", first.Raw)
	}
	if second := ok(value, "GET", path+"?order=desc&limit=1&after="+id, ""); ids(second) != both || second.Get("has_more").Bool() {
		t.Errorf("the second page is %s", second.Raw)
	}
	if got := ok("globex-admin", "GET", path, "").Get("data").Raw; got != "[]" {
		t.Errorf("another organisation sees %s", got)
	}
	agents := s.must("acme-admin", "GET", "/v1/keys?limit=1", "").Get("items.0.id").Str
	for name, test := range map[string]struct {
		key, method, path, body string
		status                  int
		says                    string
	}{
		"unknown field":       {value, "POST", path, `{"name":"x","scopes":["query"]}`, 400, "scopes"},
		"no name":             {value, "POST", path, `{}`, 400, "name"},
		"ended already":       {value, "POST", path, `{"name":"x","expires_in_seconds":0}`, 400, "expires_in_seconds"},
		"unknown order":       {value, "GET", path + "?order=up", "", 400, "order"},
		"unknown option":      {value, "GET", path + "?page=2", "", 400, "page"},
		"no such place":       {value, "GET", path + "?after=key_none", "", 400, "first page"},
		"not administering":   {value, "GET", path + "/" + agents, "", 404, "no such key"},
		"ends another's":      {"globex-admin", "DELETE", path + "/" + id, "", 404, "no such key"},
		"ends no admin's":     {value, "DELETE", path + "/" + agents, "", 404, "no such key"},
		"without the scope":   {"acme-all", "GET", path, "", 403, "admin"},
		"without a known key": {"nobody", "GET", path, "", 401, "key"},
	} {
		status, answer := s.as(test.key, test.method, test.path, test.body)
		if status != test.status || !strings.Contains(answer.Get("error.message").Str, test.says) || answer.Get("error.type").Str == "" {
			t.Errorf("%s: %d %s", name, status, answer.Raw)
		}
	}
	if got := ok(value, "GET", path+"/"+id, "").Get("name").Str; got != "terraform" {
		t.Errorf("the key is %q", got)
	}
	if got := ok("acme-admin", "DELETE", path+"/"+id, "").Raw; got != `{"object":"organization.admin_api_key.deleted","id":"`+id+`","deleted":true}` {
		t.Errorf("the end is %s", got)
	}
	if status, answer := s.as(value, "GET", path, ""); status != http.StatusUnauthorized {
		t.Errorf("a key that ended: %d %s", status, answer.Raw)
	}
}
