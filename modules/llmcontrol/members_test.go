package llmcontrol_test

import (
	"strings"
	"testing"
)

// Members are invited, read, changed and removed in OpenAI's shapes, and are in projects.
func TestMembers(t *testing.T) {
	s := newSite(t)
	const admin, users, invites = "acme-admin", organization + "users", organization + "invites"
	project := s.ok(admin, "POST", organization+"projects", `{"name":"search"}`).Get("id").Str
	path := organization + "projects/" + project + "/users"
	i := s.ok(admin, "POST", invites, `{"email":"Ada@Example.com","role":"owner","projects":[{"id":"`+project+`","role":"owner"}]}`)
	for field, want := range map[string]string{
		"object": `"organization.invite"`, "email": `"ada@example.com"`, "role": `"owner"`, "status": `"pending"`, "expires_at": "null", "accepted_at": "null",
		"projects": `[{"id":"` + project + `","role":"owner"}]`,
	} {
		if got := i.Get(field).Raw; got != want {
			t.Errorf("%s of an invitation is %s, want %s", field, got, want)
		}
	}
	second := s.ok(admin, "POST", invites, `{"email":"bo@example.com","role":"reader"}`).Get("id").Str
	if got := s.ok(admin, "GET", invites+"/"+i.Get("id").Str, ""); got.Raw != i.Raw {
		t.Error(got.Raw)
	}
	list := s.ok(admin, "GET", invites+"?limit=1", "")
	if list.Get("data.0").Raw != i.Raw || !list.Get("has_more").Bool() {
		t.Error(list.Raw)
	}
	if list = s.ok(admin, "GET", invites+"?after="+list.Get("last_id").Str, ""); list.Get("data.#").Int() != 1 || list.Get("first_id").Str != second {
		t.Error(list.Raw)
	}
	u := s.ok(admin, "GET", users, "").Get("data.0")
	ada, bo := u.Get("id").Str, s.ok(admin, "GET", users+"?emails[]=Bo@example.com&emails[]=nobody@example.com", "").Get("data.0.id").Str
	for field, want := range map[string]string{
		"object": `"organization.user"`, "email": `"ada@example.com"`, "role": `"owner"`, "name": "null", "api_key_last_used_at": "null",
		"projects": `{"object":"list","data":[{"id":"` + project + `","name":"search","role":"owner"}]}`,
	} {
		if got := u.Get(field).Raw; got != want {
			t.Errorf("%s of a user is %s, want %s", field, got, want)
		}
	}
	if got := s.ok(admin, "POST", users+"/"+bo, `{"role":"member"}`); got.Get("role").Str != "member" || s.ok(admin, "GET", users+"/"+bo, "").Raw != got.Raw {
		t.Error(got.Raw)
	}
	// Projects have members of their own.
	if got := s.ok(admin, "POST", path, `{"email":"BO@example.com","role":"member"}`); got.Get("object").Str != "organization.project.user" || got.Get("id").Str != bo || got.Get("role").Str != "member" {
		t.Error(got.Raw)
	}
	if got := s.ok(admin, "POST", path+"/"+bo, `{"role":"owner"}`); got.Get("role").Str != "owner" || s.ok(admin, "GET", path+"/"+bo, "").Raw != got.Raw {
		t.Error(got.Raw)
	}
	if got := s.ok(admin, "GET", invites+"/"+second, ""); got.Get("role").Str != "reader" || got.Get("projects").Raw != "[]" {
		t.Errorf("the invitation has changed with the member: %s", got.Raw)
	}
	if got := s.ok(admin, "GET", path+"?limit=1", ""); got.Get("first_id").Str != ada || !got.Get("has_more").Bool() {
		t.Error(got.Raw)
	}
	if got := s.ok(admin, "DELETE", path+"/"+bo, ""); got.Raw != `{"object":"organization.project.user.deleted","id":"`+bo+`","deleted":true}` || s.ok(admin, "GET", path, "").Get("data.#").Int() != 1 {
		t.Error(got.Raw)
	}
	s.refused(404, "member", admin, "GET", path+"/"+bo, "")
	s.refused(404, "member", admin, "DELETE", path+"/"+bo, "")
	s.refused(404, "member", admin, "POST", path+"/"+bo, `{"role":"owner"}`)
	s.refused(404, "member", admin, "POST", path, `{"email":"nobody@example.com","role":"member"}`)
	s.refused(409, "already", admin, "POST", path, `{"user_id":"`+ada+`","role":"member"}`)
	s.refused(409, "already", admin, "POST", invites, `{"email":"ada@example.com","role":"reader"}`)
	for body, says := range map[string]string{
		`{"email":"x@example.com","role":"admin"}`: "role", `{"email":"x","role":"reader"}`: "email", `{"role":"reader"}`: "email",
		"{\"email\":\"\u212aelvin@example.com\",\"role\":\"reader\"}": "email", `{"email":"x@example.com","role":"reader","name":"x"}`: "name",
		`{"email":"x@example.com","role":"reader","projects":[{"id":"` + project + `","role":"reader"}]}`: "role",
	} {
		s.refused(400, says, admin, "POST", invites, body)
	}
	s.refused(404, "project", admin, "POST", invites, `{"email":"x@example.com","role":"reader","projects":[{"id":"proj_none","role":"member"}]}`)
	s.refused(400, "role", admin, "POST", users+"/"+bo, `{"role":"root"}`)
	s.refused(400, "role_id", admin, "POST", users+"/"+bo, `{"role_id":"x"}`)
	s.refused(400, "expected", admin, "POST", path, `{"role":"member"}`)
	// What a member owns ends with the member.
	secret := s.must(admin, "POST", "/v1/keys", `{"name":"ada's","owner_id":"`+ada+`","scopes":["gateway"]}`).Get("secret").Str
	if status, answer := s.call(secret, "echo/echo-1"); status != 200 {
		t.Error(answer.Raw)
	}
	s.ok(admin, "DELETE", users+"/"+ada, "")
	if status, _ := s.call(secret, "echo/echo-1"); status != 401 {
		t.Error("the key of a member who was removed opens")
	}
	s.ok(admin, "DELETE", invites+"/"+second, "")
	s.refused(404, "member", admin, "GET", users+"/"+bo, "")
	if got := s.ok(admin, "GET", users, "").Get("data.#").Int() + s.ok(admin, "GET", invites, "").Get("data.#").Int(); got != 0 {
		t.Error("members are left:", got)
	}
	var types []string
	for _, e := range s.ok(admin, "GET", organization+"audit_logs?resource_ids[]="+bo, "").Get("data").Array() {
		types = append(types, e.Get("type").Str)
	}
	if got := strings.Join(types, " "); got != "user.deleted user.updated user.updated user.updated user.updated user.added" {
		t.Error("the audit log has", got)
	}
	if got := s.ok(admin, "GET", organization+"audit_logs?resource_ids[]="+bo+"&event_types[]=user.added", "").Get("data.0"); got.Get(`user\.added.data.role`).Str != "reader" || got.Get("actor.type").Str != "api_key" {
		t.Error(got.Raw)
	}
}
