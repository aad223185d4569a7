package control

import (
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/weirhq/weir/storage"
)

// What coding agents send of themselves says which session a call is of, unless a
// control header does.
func TestAgents(t *testing.T) {
	claude := map[string]string{
		"X-Claude-Code-Session-Id": "s", "X-Claude-Code-Agent-Id": "a", "X-Claude-Code-Parent-Agent-Id": "p", "X-Claude-Code-Request-Class": "subagent",
	}
	codex := map[string]string{"Session-Id": "s", "Thread-Id": "t2", "X-Codex-Parent-Thread-Id": "t1", "X-Openai-Subagent": "review"}
	for name, c := range map[string]struct {
		headers, more map[string]string
		session       string
		properties    map[string]string
	}{
		"Claude Code": {claude, nil, "s", map[string]string{"Agent-Id": "a", "Parent-Agent-Id": "p", "Request-Class": "subagent"}},
		"Codex":       {codex, nil, "s", map[string]string{"Agent-Id": "t2", "Parent-Agent-Id": "t1", "Agent-Type": "review"}},
		"a session of the caller's": {claude, map[string]string{"Service-Session-Id": "mine", "Service-Property-Agent-Id": "me"}, "mine",
			map[string]string{"Agent-Id": "me", "Parent-Agent-Id": "p", "Request-Class": "subagent"}},
		"nobody": {nil, nil, "", nil},
	} {
		request := httptest.NewRequest("POST", "/", nil)
		for _, headers := range []map[string]string{c.headers, c.more} {
			for key, value := range headers {
				request.Header.Set(key, value)
			}
		}
		var r storage.Record
		Read(request.Header, &Headers{Prefixes: []string{"Service-"}}, &r)
		ReadEdge(request, "", &r)
		if r.SessionID != c.session || !reflect.DeepEqual(r.Properties, c.properties) {
			t.Errorf("%s: session %q, properties %v", name, r.SessionID, r.Properties)
		}
		for key := range c.headers {
			if request.Header.Get(key) == "" {
				t.Errorf("%s: the provider does not get %s", name, key)
			}
		}
	}
}

// The body names the user where no header does, and not where it must not be kept.
func TestUserOfTheBody(t *testing.T) {
	const session = "5f0c8bd2-0000-4000-8000-000000000001"
	for _, c := range []struct {
		record                      storage.Record
		body, wantUser, wantSession string
	}{
		{storage.Record{}, "u-1", "u-1", ""},
		{storage.Record{UserID: "header", SessionID: "s"}, "u-1", "header", "s"},
		{storage.Record{RequestOmitted: true}, "u-1", "", ""},
		{storage.Record{}, "user_0a1b_account_acc-1_session_" + session, "acc-1", session},
		{storage.Record{}, "user_0a1b_account__session_" + session, "user_0a1b", session},
		{storage.Record{}, `{"device_id":"d","account_uuid":"acc-1","session_id":"` + session + `"}`, "acc-1", session},
		{storage.Record{}, `{"device_id":"d","account_uuid":"","session_id":"` + session + `"}`, "d", session},
		{storage.Record{SessionID: "s"}, `{"device_id":"d","session_id":"` + session + `"}`, "d", "s"},
		{storage.Record{}, `{"device_id":`, `{"device_id":`, ""},
	} {
		r := c.record
		ReadUser(&r, c.body)
		if r.UserID != c.wantUser || r.SessionID != c.wantSession {
			t.Errorf("%s: user %q, session %q", c.body, r.UserID, r.SessionID)
		}
		if property := r.Properties["Service-Session-Id"]; c.record.SessionID == "" && property != c.wantSession {
			t.Errorf("%s: the property is %q", c.body, property)
		}
	}
	shared := map[string]string{"a": "b"}
	r := storage.Record{Properties: shared}
	ReadUser(&r, "user_0_account_1_session_2")
	if !reflect.DeepEqual(shared, map[string]string{"a": "b"}) {
		t.Errorf("another record's properties are %v", shared)
	}
}
