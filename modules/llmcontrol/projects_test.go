package llmcontrol_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

const organization = "/v1/organization/"

// ok is as for what has to succeed.
func (s *site) ok(key, method, path, body string) gjson.Result {
	s.t.Helper()
	status, answer := s.as(key, method, path, body)
	if status != http.StatusOK {
		s.t.Fatalf("%s %s: %d %s", method, path, status, answer.Raw)
	}
	return answer
}

// refused is as for what has to fail, with a sentence that says something.
func (s *site) refused(status int, says, key, method, path, body string) {
	s.t.Helper()
	got, answer := s.as(key, method, path, body)
	text := answer.Get("error.message").Str + answer.Get("error").Str
	if got != status || !strings.Contains(text, says) {
		s.t.Errorf("%s %s: %d %s, want %d and %q", method, path, got, answer.Raw, status, says)
	}
}

func TestProjects(t *testing.T) {
	s := newSite(t)
	const admin = "acme-admin"
	p := s.ok(admin, "POST", organization+"projects", `{"name":"search"}`)
	if p.Get("object").Str != "organization.project" || p.Get("status").Str != "active" || p.Get("archived_at").Type != gjson.Null {
		t.Fatal(p.Raw)
	}
	path := organization + "projects/" + p.Get("id").Str
	s.refused(409, "search", admin, "POST", organization+"projects", `{"name":"search"}`)
	s.refused(400, "name", admin, "POST", organization+"projects", `{"name":""}`)
	s.refused(400, "geography", admin, "POST", organization+"projects", `{"name":"x","geography":"eu"}`)
	a := s.ok(admin, "POST", path+"/service_accounts", `{"name":"crawler"}`)
	secret := a.Get("api_key.value").Str
	if status, answer := s.call(secret, "echo/echo-1"); status != http.StatusOK {
		t.Fatal(answer.Raw)
	}
	if status, answer := s.as(secret, "GET", organization+"projects", ""); status != http.StatusForbidden {
		t.Error("the key of a service account administers:", answer.Raw)
	}
	if k := s.ok(admin, "GET", path+"/api_keys/"+a.Get("api_key.id").Str, ""); k.Get("owner.service_account.id").Str != a.Get("id").Str || k.Get("owner.type").Str != "service_account" || strings.Contains(k.Raw, secret) {
		t.Error(k.Raw)
	}
	// A name that changes leaves the records together.
	s.ok(admin, "POST", path, `{"name":"find"}`)
	s.refused(409, "began with", admin, "POST", organization+"projects", `{"name":"search"}`)
	if got := s.must(secret, "GET", "/v1/key", "").Get("project").Str; got != "search" {
		t.Errorf("the records' project is %q", got)
	}
	// The models of the project bound its keys.
	s.ok(admin, "POST", path+"/model_permissions", `{"mode":"deny_list","model_ids":["echo/*"]}`)
	if status, answer := s.call(secret, "echo/echo-1"); status != http.StatusForbidden || answer.Get("error.code").Str != "model_not_allowed" {
		t.Errorf("a model that is denied: %d %s", status, answer.Raw)
	}
	s.ok(admin, "DELETE", path+"/model_permissions", "")
	if status, answer := s.call(secret, "echo/echo-1"); status != http.StatusOK {
		t.Error(answer.Raw)
	}
	// A second key, of which the first knows nothing.
	second := s.ok(admin, "POST", path+"/service_accounts/"+a.Get("id").Str+"/api_keys", `{"name":"second","expires_in_seconds":3600}`)
	if at := second.Get("expires_at").Int(); at < time.Now().Unix()+3500 || at > time.Now().Unix()+3700 {
		t.Error(second.Raw)
	}
	if list := s.ok(admin, "GET", path+"/api_keys?limit=1", ""); list.Get("data.#").Int() != 1 || !list.Get("has_more").Bool() || list.Get("last_id").Str != a.Get("api_key.id").Str {
		t.Error(list.Raw)
	} else if list = s.ok(admin, "GET", path+"/api_keys?limit=1&after="+list.Get("last_id").Str, ""); list.Get("first_id").Str != second.Get("id").Str || list.Get("has_more").Bool() {
		t.Error(list.Raw)
	}
	s.refused(400, "scopes", admin, "POST", path+"/api_keys/"+second.Get("id").Str, `{"scopes":[]}`)
	if changed := s.ok(admin, "POST", path+"/api_keys/"+second.Get("id").Str, `{"scopes":["gateway"],"expires_in_seconds":60}`); changed.Get("expires_at").Int() > time.Now().Unix()+70 {
		t.Error(changed.Raw)
	}
	s.ok(admin, "DELETE", path+"/api_keys/"+second.Get("id").Str, "")
	if status, _ := s.call(second.Get("value").Str, "echo/echo-1"); status != http.StatusUnauthorized {
		t.Error("a key that was deleted opens")
	}
	s.ok(admin, "POST", path+"/archive", "")
	if status, _ := s.call(secret, "echo/echo-1"); status != http.StatusUnauthorized {
		t.Error("a key of an archived project opens")
	}
	s.refused(409, "archived", admin, "POST", path+"/service_accounts", `{"name":"late"}`)
	s.refused(409, "archived", admin, "POST", path+"/archive", "")
	if list := s.ok(admin, "GET", organization+"projects", ""); list.Get("data.#").Int() != 0 {
		t.Error(list.Raw)
	}
	if list := s.ok(admin, "GET", organization+"projects?include_archived=true", ""); list.Get("data.0.status").Str != "archived" {
		t.Error(list.Raw)
	}
	s.ok(admin, "DELETE", path+"/service_accounts/"+a.Get("id").Str, "")
	s.refused(404, "service account", admin, "GET", path+"/service_accounts/"+a.Get("id").Str, "")
	s.refused(404, "key", admin, "GET", path+"/api_keys/"+a.Get("api_key.id").Str, "")
	// No secret is in an event, or in the log.
	logged, err := os.ReadFile(s.dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	said := s.must(admin, "GET", "/v1/audit", "").Raw + s.ok(admin, "GET", organization+"audit_logs", "").Raw + string(logged)
	for _, secret := range []string{secret, second.Get("value").Str} {
		if strings.Contains(said, secret) || strings.Contains(said, secret[5:40]) {
			t.Error("a secret is in the audit log")
		}
	}
}

// Nobody sees or changes what is another organisation's.
func TestOrganisationsAreApart(t *testing.T) {
	s := newSite(t)
	p := s.ok("acme-admin", "POST", organization+"projects", `{"name":"search"}`)
	path := organization + "projects/" + p.Get("id").Str
	a := s.ok("acme-admin", "POST", path+"/service_accounts", `{"name":"crawler"}`)
	s.ok("acme-admin", "POST", path+"/rate_limits/rl-echo-1", `{"max_requests_per_1_minute":100}`)
	s.ok("acme-admin", "POST", path+"/spend_limit", `{"threshold_amount":500,"currency":"USD","interval":"month"}`)
	s.must("acme-admin", "POST", "/v1/budgets", `{"name":"all","limit":"5"}`)
	own := s.ok("globex-admin", "POST", organization+"projects", `{"name":"search"}`) // the name is free
	events := s.must("acme-admin", "GET", "/v1/audit", "").Get("items.#").Int()
	account, key := a.Get("id").Str, a.Get("api_key.id").Str
	other := organization + "projects/" + own.Get("id").Str
	for _, c := range [][2]string{
		{"GET " + path, ""}, {"POST " + path, `{"name":"x"}`}, {"POST " + path + "/archive", ""},
		{"GET " + path + "/service_accounts", ""}, {"POST " + path + "/service_accounts", `{"name":"x"}`},
		{"GET " + path + "/api_keys", ""}, {"GET " + path + "/model_permissions", ""}, {"DELETE " + path + "/model_permissions", ""},
		{"POST " + path + "/model_permissions", `{"mode":"deny_list","model_ids":[]}`},
		{"GET " + path + "/rate_limits", ""}, {"POST " + path + "/rate_limits/rl-m", `{"max_requests_per_1_minute":1}`},
		{"GET " + path + "/spend_limit", ""}, {"DELETE " + path + "/spend_limit", ""}, {"POST " + path + "/spend_limit", `{"threshold_amount":1,"currency":"USD","interval":"month"}`},
		{"GET " + other + "/service_accounts/" + account, ""}, {"POST " + other + "/service_accounts/" + account, `{"name":"x"}`},
		{"DELETE " + other + "/service_accounts/" + account, ""}, {"POST " + other + "/service_accounts/" + account + "/api_keys", `{}`},
		{"GET " + other + "/api_keys/" + key, ""}, {"POST " + other + "/api_keys/" + key, `{"scopes":["gateway"]}`}, {"DELETE " + other + "/api_keys/" + key, ""},
		{"GET /v1/budgets/all", ""}, {"PATCH /v1/budgets/all", `{"limit":"1"}`}, {"DELETE /v1/budgets/all", ""},
	} {
		method, path, _ := strings.Cut(c[0], " ")
		s.refused(404, "no such", "globex-admin", method, path, c[1])
	}
	if list := s.ok("globex-admin", "GET", organization+"projects?include_archived=true", ""); list.Get("data.#").Int() != 1 {
		t.Error(list.Raw)
	}
	if list := s.ok("globex-admin", "GET", organization+"audit_logs?resource_ids[]="+account, ""); list.Get("data.#").Int() != 0 {
		t.Error(list.Raw)
	}
	if now := s.must("acme-admin", "GET", "/v1/audit", "").Get("items.#").Int(); now != events {
		t.Errorf("%d events of acme were %d", now, events)
	}
}

func TestLimitsOfProjects(t *testing.T) {
	s := newSite(t)
	const admin = "acme-admin"
	path := organization + "projects/" + s.ok(admin, "POST", organization+"projects", `{"name":"search"}`).Get("id").Str
	s.refused(404, "spend limit", admin, "GET", path+"/spend_limit", "")
	s.refused(404, "spend limit", admin, "DELETE", organization+"spend_limit", "")
	for _, body := range []string{`{"threshold_amount":0,"currency":"USD","interval":"month"}`, `{"threshold_amount":5,"currency":"EUR","interval":"month"}`, `{"threshold_amount":5,"currency":"USD","interval":"day"}`} {
		s.refused(400, "expected", admin, "POST", path+"/spend_limit", body)
	}
	for _, of := range []string{path, strings.TrimSuffix(organization, "/")} {
		s.ok(admin, "POST", of+"/spend_limit", `{"threshold_amount":1205,"currency":"USD","interval":"month"}`)
		if got := s.ok(admin, "GET", of+"/spend_limit", ""); got.Get("threshold_amount").Int() != 1205 || got.Get("enforcement.status").Str != "inactive" {
			t.Error(got.Raw)
		}
	}
	b := s.must(admin, "GET", "/v1/budgets/"+url.PathEscape("search: spend limit"), "")
	if b.Get("limit").Raw != "12.05" || b.Get("window").Str != "month" || b.Get("filter.request_response_rmt.project.equals").Str != "search" || b.Get("id").Type == gjson.Null {
		t.Error(b.Raw)
	}
	if got := s.ok(admin, "DELETE", path+"/spend_limit", ""); got.Get("object").Str != "project.spend_limit.deleted" {
		t.Error(got.Raw)
	}
	s.refused(404, "spend limit", admin, "GET", path+"/spend_limit", "")
	s.ok(admin, "GET", organization+"spend_limit", "")

	for _, model := range []string{"gpt-5", "openai/o3"} {
		s.ok(admin, "POST", path+"/rate_limits/"+url.PathEscape("rl-"+model), `{"max_requests_per_1_minute":10,"max_tokens_per_1_minute":1000,"max_requests_per_1_day":50}`)
	}
	got := s.ok(admin, "POST", path+"/rate_limits/rl-gpt-5", `{"max_requests_per_1_minute":20,"max_tokens_per_1_minute":9007199254740991}`)
	if got.Get("id").Str != "rl-gpt-5" || got.Get("model").Str != "gpt-5" || got.Get("max_requests_per_1_minute").Int() != 20 || got.Get("max_tokens_per_1_minute").Int() != 1<<53-1 || got.Get("max_requests_per_1_day").Int() != 50 {
		t.Error(got.Raw)
	}
	list := s.ok(admin, "GET", path+"/rate_limits?limit=1", "")
	if list.Get("data.0").Raw != got.Raw || !list.Get("has_more").Bool() {
		t.Error(list.Raw)
	}
	if list = s.ok(admin, "GET", path+"/rate_limits?limit=1000&after="+list.Get("last_id").Str, ""); list.Get("data.#").Int() != 1 || list.Get("data.0.model").Str != "openai/o3" || list.Get("data.0.max_tokens_per_1_minute").Int() != 1000 {
		t.Error(list.Raw)
	}
	// The limits hold for the keys of the project, and for no other.
	agent := s.ok(admin, "POST", path+"/service_accounts", `{"name":"crawler"}`).Get("api_key.value").Str
	other := s.must(admin, "POST", "/v1/keys", `{"name":"x","scopes":["gateway"]}`).Get("secret").Str
	for i, c := range []struct {
		limit, key, model string
		status            int
		code              string
	}{
		{"echo-1", agent, "echo-1", 200, ""},
		{"echo-1", agent, "echo/echo-1", 429, "rate_limit_exceeded"},
		{"echo-1", other, "echo/echo-1", 200, ""},
		{"echo-1", other, "echo/echo-1", 200, ""},
		{"echo/echo-1", agent, "echo-1", 200, ""},
		{"echo/echo-1", agent, "echo-1", 429, "rate_limit_exceeded"},
	} {
		limit := path + "/rate_limits/" + url.PathEscape("rl-"+c.limit)
		s.ok(admin, "POST", limit, `{"max_requests_per_1_minute":1}`)
		if status, answer := s.call(c.key, c.model); status != c.status || answer.Get("error.code").Str != c.code {
			t.Errorf("call %d: %d %s", i, status, answer.Raw)
		}
		if i == 3 { // the last of this limit
			s.ok(admin, "POST", limit, `{"max_requests_per_1_minute":9007199254740991}`)
		}
	}
	s.ok(admin, "POST", path+"/rate_limits/"+url.PathEscape("rl-echo/echo-1"), `{"max_requests_per_1_minute":9007199254740991}`)
	if status, answer := s.call(agent, "echo/echo-1"); status != http.StatusOK {
		t.Error("a limit that ended:", answer.Raw)
	}
	s.refused(400, "rl-", admin, "POST", path+"/rate_limits/gpt-5", `{"max_requests_per_1_minute":1}`)
	s.refused(400, "expected", admin, "POST", path+"/rate_limits/rl-gpt-5", `{}`)
	s.refused(400, "images", admin, "POST", path+"/rate_limits/rl-gpt-5", `{"max_images_per_1_minute":1}`)
	s.refused(400, "number", admin, "POST", path+"/rate_limits/rl-gpt-5", `{"max_requests_per_1_minute":0}`)
}

func TestBudgetsAtRunTime(t *testing.T) {
	s := newSite(t)
	const admin, path = "globex-admin", "/v1/budgets"
	full := `{"name":"team a","limit":"500","quantity":"requests","window":"24h","per":"key","wait":"5s","stages":[{"at":80}],"filter":{"request_response_rmt":{"project":{"equals":"a"}}}}`
	b := s.must(admin, "POST", path, full)
	for field, want := range map[string]string{"name": `"team a"`, "limit": "500", "quantity": `"requests"`, "window": `"24h"`, "per": `"key"`, "wait": `"5s"`, "stages.0.at": "80", "values": "0", "on_unpriced": `"refuse"`} {
		if got := b.Get(field).Raw; got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
	again := s.must(admin, "POST", path, `{"name":"team a","limit":"3.50"}`)
	if again.Get("id").Str != b.Get("id").Str || again.Get("quantity").Str != "usd" || again.Get("per").Type != gjson.Null {
		t.Error(again.Raw)
	}
	changed := s.must(admin, "PATCH", path+"/team%20a", `{"per":"user","limit":"4"}`)
	if changed.Get("limit").Raw != "4" || changed.Get("per").Str != "user" {
		t.Error(changed.Raw)
	}
	if changed = s.must(admin, "PATCH", path+"/team%20a", `{"per":null}`); changed.Get("per").Type != gjson.Null || changed.Get("limit").Raw != "4" {
		t.Error(changed.Raw)
	}
	// A limit of calls at once has no window, and is read again.
	s.must(admin, "POST", path, `{"name":"at once","limit":"3","quantity":"concurrent"}`)
	s.must(admin, "PATCH", path+"/at%20once", `{"limit":"4"}`)
	list := s.must(admin, "GET", path, "").Get("items")
	if got := list.Get("#.name").Raw; got != `["at once","everybody","one","run","team a"]` {
		t.Error(got)
	}
	if list.Get("1.id").Type != gjson.Null || list.Get("4.id").Str == "" {
		t.Error(list.Raw)
	}
	var paged []string
	for next := ""; ; {
		p := s.must(admin, "GET", path+"?limit=2&values=1&after="+url.QueryEscape(next), "")
		for _, b := range p.Get("items.#.name").Array() {
			paged = append(paged, b.Str)
		}
		if next = p.Get("next").Str; next == "" {
			break
		}
	}
	if want := []string{"at once", "everybody", "one", "run", "team a"}; !slices.Equal(paged, want) {
		t.Errorf("the pages have %q", paged)
	}
	if status, answer := s.as(admin, "GET", path+"?values=0", ""); status != http.StatusBadRequest || !strings.Contains(answer.Raw, "values: a number from 1 to 200") {
		t.Errorf("%d %s", status, answer.Raw)
	}
	for _, c := range []struct {
		status       int
		says         string
		method, path string
		body         string
	}{
		{409, "configuration", "POST", path, `{"name":"everybody","limit":"1"}`},
		{409, "configuration", "PATCH", path + "/everybody", `{"limit":"1"}`},
		{409, "configuration", "DELETE", path + "/everybody", ""},
		{400, "limit", "POST", path, `{"name":"x","limit":"much"}`},
		{400, "colour", "POST", path, `{"name":"x","limit":"1","colour":"red"}`},
		{400, "name", "POST", path, `{"limit":"1"}`},
		{400, "duplicate", "POST", path, `{"name":"x","limit":"1","limit":"2"}`},
		{400, "window", "PATCH", path + "/team%20a", `{"window":"fortnight"}`},
		{400, "keeps its name", "PATCH", path + "/team%20a", `{"name":"team b"}`},
		{400, "duplicate", "PATCH", path + "/team%20a", `{"limit":"1","limit":"2"}`},
		{404, "no such budget", "PATCH", path + "/none", `{"limit":"1"}`},
		{404, "no such budget", "DELETE", path + "/none", ""},
		{404, "no such budget", "GET", path + "/none", ""},
	} {
		s.refused(c.status, c.says, admin, c.method, c.path, c.body)
	}
	s.must(admin, "DELETE", path+"/team%20a", "")
	s.refused(404, "no such budget", admin, "GET", path+"/team%20a", "")
	events := s.must(admin, "GET", "/v1/audit?key="+b.Get("id").Str, "").Get("items")
	if got := events.Get("#.action").Raw; got != `["rule.deleted","rule.updated","rule.updated","rule.updated","rule.created"]` {
		t.Error(got)
	}
	if events.Get("1.before.budget.per").Str != "user" || events.Get("1.after.budget.per").Exists() {
		t.Error(events.Get("1").Raw)
	}
}

func TestAuditLogs(t *testing.T) {
	s := newSite(t)
	const admin = "acme-admin"
	p := s.ok(admin, "POST", organization+"projects", `{"name":"search"}`)
	path := organization + "projects/" + p.Get("id").Str
	a := s.ok(admin, "POST", path+"/service_accounts", `{"name":"crawler"}`)
	s.ok(admin, "POST", organization+"projects", `{"name":"mail"}`)
	s.ok(admin, "POST", path+"/rate_limits/rl-m", `{"max_requests_per_1_minute":1}`)
	all := s.ok(admin, "GET", organization+"audit_logs", "")
	if got := all.Get("data.#.type").Raw; got != `["rate_limit.updated","project.created","api_key.created","service_account.created","project.created"]` {
		t.Fatal(got)
	}
	if e := all.Get("data.2"); e.Get(`api_key\.created.id`).Str != a.Get("api_key.id").Str || e.Get(`api_key\.created.data.scopes.0`).Str != "gateway" || e.Get("project.id").Str != p.Get("id").Str || !strings.HasPrefix(e.Get("actor.api_key.id").Str, "sha256:") {
		t.Error(e.Raw)
	}
	now := time.Now().Unix()
	for query, want := range map[string]int64{
		"event_types[]=project.created": 2, "event_types=api_key.created": 1, "project_ids[]=" + p.Get("id").Str: 4, "resource_ids[]=" + a.Get("id").Str: 1,
		"actor_ids[]=nobody": 0, "actor_ids[]=" + all.Get("data.0.actor.api_key.id").Str: 5,
		fmt.Sprint("effective_at[gt]=", now+10): 0, fmt.Sprint("effective_at[gte]=", now-60): 5, fmt.Sprint("effective_at[lt]=", now-60): 0,
		"after=" + all.Get("data.3.id").Str: 1,
	} {
		if got := s.ok(admin, "GET", organization+"audit_logs?"+query, ""); got.Get("data.#").Int() != want || got.Get("has_more").Bool() {
			t.Errorf("%s: %s, want %d", query, got.Raw, want)
		}
	}
	if got := s.ok(admin, "GET", organization+"audit_logs?limit=2&event_types[]=project.created&event_types[]=api_key.created", ""); got.Get("data.#").Int() != 2 || !got.Get("has_more").Bool() {
		t.Error(got.Raw)
	}
	s.refused(400, "before", admin, "GET", organization+"audit_logs?before=evt_1", "")
	s.refused(400, "first page", admin, "GET", organization+"audit_logs?after=evt_1", "")
	s.refused(400, "seconds", admin, "GET", organization+"audit_logs?effective_at[gt]=now", "")
}

// What calls used is told by the project, the user, the key and the model.
func TestUsage(t *testing.T) {
	s := newSite(t)
	const admin = "acme-admin"
	p := s.ok(admin, "POST", organization+"projects", `{"name":"search"}`)
	a := s.ok(admin, "POST", organization+"projects/"+p.Get("id").Str+"/service_accounts", `{"name":"crawler"}`)
	other := s.must(admin, "POST", "/v1/keys", `{"name":"x","scopes":["gateway"],"user":"ada"}`)
	for range 3 {
		if status, answer := s.call(a.Get("api_key.value").Str, "echo/echo-1"); status != 200 {
			t.Fatal(answer.Raw)
		}
	}
	if status, answer := s.call(other.Get("secret").Str, "echo/echo-1"); status != 200 {
		t.Fatal(answer.Raw)
	}
	s.ok(admin, "POST", organization+"projects/"+p.Get("id").Str+"/model_permissions", `{"mode":"allow_list","model_ids":[]}`)
	if status, _ := s.call(a.Get("api_key.value").Str, "echo/echo-1"); status != http.StatusForbidden {
		t.Fatal(status)
	}
	start := time.Now().Unix() - 86400
	ask := func(path, query string) gjson.Result {
		t.Helper()
		return s.ok(admin, "GET", fmt.Sprint(organization, path, "?start_time=", start, "&", query), "")
	}
	var all gjson.Result
	for deadline := time.Now().Add(10 * time.Second); all.Get("data.1.results.0.num_model_requests").Int() != 4; time.Sleep(50 * time.Millisecond) {
		if all = ask("usage/completions", ""); time.Now().After(deadline) {
			t.Fatal(all.Raw)
		}
	}
	if all.Get("data.#").Int() != 2 || all.Get("has_more").Bool() || all.Get("data.0.results.#").Int() != 0 || all.Get("data.1.results.0.input_tokens").Int() == 0 || all.Get("data.1.results.0.output_tokens").Int() == 0 {
		t.Error(all.Raw)
	}
	if bucket := all.Get("data.1"); bucket.Get("start_time").Int()%86400 != 0 || bucket.Get("end_time").Int() != bucket.Get("start_time").Int()+86400 {
		t.Error(bucket.Raw)
	}
	grouped := ask("usage/completions", "group_by[]=project_id&group_by[]=api_key_id&group_by[]=model").Get("data.1.results")
	if grouped.Get("#").Int() != 2 || grouped.Get("0.project_id").Type != gjson.Null || grouped.Get("1.project_id").Str != p.Get("id").Str || grouped.Get("1.api_key_id").Str != a.Get("api_key.id").Str || grouped.Get("1.num_model_requests").Int() != 3 || grouped.Get("1.model").Str != "echo-1" {
		t.Error(grouped.Raw)
	}
	for query, want := range map[string]int64{
		"project_ids[]=" + p.Get("id").Str: 3, "project_ids[]=search": 3, "user_ids[]=ada": 1, "user_ids[]=ada&user_ids[]=claimed": 4, "models[]=none": 0, "api_key_ids=" + other.Get("id").Str: 1,
	} {
		if got := ask("usage/completions", query).Get("data.1.results.0.num_model_requests").Int(); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	if got := ask("usage/embeddings", ""); got.Get("data.1.results.0.num_model_requests").Int() != 0 {
		t.Error(got.Raw)
	}
	costs := ask("costs", "group_by[]=line_item").Get("data.1.results")
	if costs.Get("0.line_item").Str != "echo-1" || costs.Get("0.amount.value").Type != gjson.Number || costs.Get("0.amount.currency").Str != "usd" {
		t.Error(costs.Raw)
	}
	page := ask("usage/completions", "bucket_width=1h&limit=10")
	if page.Get("data.#").Int() != 10 || !page.Get("has_more").Bool() || page.Get("next_page").Str != page.Get("data.9.end_time").Raw {
		t.Error(page.Raw)
	}
	if page = ask("usage/completions", "bucket_width=1h&limit=168&page="+page.Get("next_page").Str); page.Get("data.#").Int() != 15 || page.Get("has_more").Bool() {
		t.Error(page.Get("data.#").Raw, page.Get("has_more").Raw)
	}
	if got := s.ok("globex-admin", "GET", fmt.Sprint(organization, "usage/completions?start_time=", start), ""); got.Get("data.1.results.0.num_model_requests").Int() != 0 {
		t.Error("another's usage:", got.Raw)
	}
	for query, says := range map[string]string{"group_by[]=colour": "colour", "bucket_width=2d": "2d", "limit=500": "limit", "page=x": "page", "size=1": "size"} {
		s.refused(400, says, admin, "GET", fmt.Sprint(organization, "usage/completions?start_time=", start, "&", query), "")
	}
	s.refused(400, "start_time", admin, "GET", organization+"costs", "")
}

// Alerts are stages of the spend limit, which stay when the limit changes, and end with it.
func TestSpendAlerts(t *testing.T) {
	s := newSite(t)
	const admin = "acme-admin"
	project := organization + "projects/" + s.ok(admin, "POST", organization+"projects", `{"name":"search"}`).Get("id").Str
	alert := func(cents int) string {
		return fmt.Sprintf(`{"threshold_amount":%d,"currency":"USD","interval":"month","notification_channel":{"type":"email","recipients":["ada@example.com"],"subject_prefix":"[spend]"}}`, cents)
	}
	limit := func(cents int) string {
		return fmt.Sprintf(`{"threshold_amount":%d,"currency":"USD","interval":"month"}`, cents)
	}
	for of, c := range map[string]struct{ path, rule string }{
		"organization": {strings.TrimSuffix(organization, "/"), "spend limit"}, "project": {project, "search: spend limit"},
	} {
		path := c.path + "/spend_alerts"
		stages := func(want string) {
			t.Helper()
			if got := s.must(admin, "GET", "/v1/budgets/"+url.PathEscape(c.rule), "").Get("stages.#.at").Raw; got != want {
				t.Errorf("the stages are at %s, want %s", got, want)
			}
		}
		s.refused(409, "no spend limit", admin, "POST", path, alert(80))
		s.refused(404, "spend alert", admin, "GET", path+"/alert_none", "")
		s.refused(404, "spend alert", admin, "DELETE", path+"/alert_none", "")
		s.ok(admin, "POST", c.path+"/spend_limit", limit(1000))
		a := s.ok(admin, "POST", path, alert(800))
		if a.Get("object").Str != of+".spend_alert" || a.Get("threshold_amount").Int() != 800 || a.Get("notification_channel").Raw != `{"type":"email","recipients":["ada@example.com"],"subject_prefix":"[spend]"}` {
			t.Error(a.Raw)
		}
		id := a.Get("id").Str
		s.must(admin, "PATCH", "/v1/budgets/"+url.PathEscape(c.rule), `{"stages":[{"at":80},{"at":50}]}`) // one of them is nobody's alert
		b := s.ok(admin, "POST", path, alert(333))
		stages("[50,80,34]")
		if got := s.ok(admin, "GET", path+"?order=desc&limit=1", ""); got.Get("first_id").Str != b.Get("id").Str || !got.Get("has_more").Bool() {
			t.Error(got.Raw)
		}
		if got := s.ok(admin, "GET", path+"?after="+id, ""); got.Get("data.0").Raw != b.Raw || got.Get("data.#").Int() != 1 {
			t.Error(got.Raw)
		}
		if got := s.ok(admin, "POST", path+"/"+id, alert(1000)); got.Get("id").Str != id || s.ok(admin, "GET", path+"/"+id, "").Raw != got.Raw {
			t.Error(got.Raw)
		}
		stages("[50,100,34]")
		s.refused(400, "at most the spend limit", admin, "POST", path+"/"+id, alert(1001))
		s.ok(admin, "POST", c.path+"/spend_limit", limit(2000))
		stages("[50,17]")
		if got := s.ok(admin, "DELETE", path+"/"+id, ""); got.Raw != `{"object":"`+of+`.spend_alert.deleted","id":"`+id+`","deleted":true}` {
			t.Error(got.Raw)
		}
		stages("[17]")
		for says, body := range map[string]string{
			"currency": `{"threshold_amount":1,"currency":"EUR"}`, "recipients": strings.Replace(alert(1), "ada@example.com", "ada", 1),
			"number": alert(0), "email": strings.Replace(alert(1), `"email"`, `"sms"`, 1), "unknown": `{"unknown":1}`,
		} {
			s.refused(400, says, admin, "POST", path, body)
		}
		s.ok(admin, "DELETE", c.path+"/spend_limit", "")
		if got := s.ok(admin, "GET", path, "").Get("data").Raw; got != "[]" {
			t.Error("alerts without a limit:", got)
		}
	}
}

// An alert is told in the audit log when so much is spent.
func TestSpendAlertsAreTold(t *testing.T) {
	s := newSite(t)
	const admin = "acme-admin"
	project := organization + "projects/" + s.ok(admin, "POST", organization+"projects", `{"name":"search"}`).Get("id").Str
	s.ok(admin, "POST", project+"/spend_limit", `{"threshold_amount":10000,"currency":"USD","interval":"month"}`)
	s.ok(admin, "POST", project+"/spend_alerts", `{"threshold_amount":1,"currency":"USD","interval":"month","notification_channel":{"type":"email","recipients":["ada@example.com"]}}`)
	secret := s.ok(admin, "POST", project+"/service_accounts", `{"name":"crawler"}`).Get("api_key.value").Str
	told := func() gjson.Result {
		return s.must(admin, "GET", "/v1/audit?key="+url.QueryEscape("search: spend limit"), "").Get("items.0")
	}
	if told().Exists() {
		t.Fatal("an alert is told of nothing:", told().Raw)
	}
	body := `{"model":"echo/echo-1","messages":[{"role":"user","content":"` + strings.Repeat("word ", 40_000) + `"}]}`
	for calls := 0; calls < 100 && !told().Exists(); calls++ {
		if status, answer := s.as(secret, "POST", "/v1/chat/completions", body); status != http.StatusOK {
			t.Fatal(status, answer.Raw)
		}
	}
	if got := told(); got.Get("action").Str != "budget.reached" || got.Get("after.at").Int() != 1 || got.Get("after.limit").Raw != "100" {
		t.Error(got.Raw)
	}
}

// A key sees the models that it may call, in both dialects.
func TestAKeyListsItsModels(t *testing.T) {
	s := newSite(t)
	const admin = "acme-admin"
	path := organization + "projects/" + s.ok(admin, "POST", organization+"projects", `{"name":"search"}`).Get("id").Str
	secret := s.must(admin, "POST", "/v1/keys", `{"name":"x","project":"search","scopes":["gateway"]}`).Get("secret").Str
	id := s.must(admin, "GET", "/v1/keys", "").Get("items.0.id").Str
	ids := func(key string) string {
		t.Helper()
		status, answer := s.as(key, "GET", "/v1/models", "")
		if status != http.StatusOK {
			t.Fatal(answer.Raw)
		}
		return answer.Get("data.#.id").Raw
	}
	all := ids(secret)
	if !strings.Contains(all, `"echo-1"`) || all != ids("") {
		t.Fatalf("a key without limits sees %s, others %s", all, ids(""))
	}
	for _, c := range []struct{ models, project, want string }{
		{`["echo/echo-1"]`, "", `["echo-1"]`},
		{`["gpt-*"]`, "", `[]`},
		{`[]`, `{"mode":"allow_list","model_ids":["second/echo-1"]}`, `["echo-1"]`},
		{`[]`, `{"mode":"deny_list","model_ids":["*"]}`, `[]`},
	} {
		s.must(admin, "PATCH", "/v1/keys/"+id, `{"models":`+c.models+`}`)
		if c.project != "" {
			s.ok(admin, "POST", path+"/model_permissions", c.project)
		}
		if got := ids(secret); got != c.want {
			t.Errorf("models %s, project %s: the key sees %s, not %s", c.models, c.project, got, c.want)
		}
		want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[c.want != "[]"]
		if status, answer := s.as(secret, "GET", "/v1/models/echo-1", ""); status != want {
			t.Errorf("models %s, project %s: %d %s", c.models, c.project, status, answer.Raw)
		}
	}
}
