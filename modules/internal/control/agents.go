package control

import (
	"cmp"
	"maps"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// agent is the headers in which a coding agent says what a call belongs to, in their canonical form.
type agent struct {
	// session has the session.
	session string
	// properties have what becomes a property.
	properties []agentHeader
}

// agentHeader is the header of a property.
type agentHeader struct{ property, header string }

// agents are Claude Code (https://code.claude.com/docs/en/llm-gateway-protocol) and
// Codex (https://github.com/openai/codex).
var agents = []agent{
	{"X-Claude-Code-Session-Id", []agentHeader{
		{lineage.AgentProperty, "X-Claude-Code-Agent-Id"},
		{lineage.ParentAgentProperty, "X-Claude-Code-Parent-Agent-Id"},
		{"Agent-Type", "X-Claude-Code-Agent-Type"},
		{"Request-Class", "X-Claude-Code-Request-Class"},
		{"Compaction", "X-Claude-Code-Compaction"},
		{"Context-Compacted", "X-Claude-Code-Context-Compacted"},
	}},
	{"Session-Id", []agentHeader{
		{lineage.AgentProperty, "Thread-Id"},
		{lineage.ParentAgentProperty, "X-Codex-Parent-Thread-Id"},
		{"Agent-Type", "X-Openai-Subagent"},
	}},
}

// readAgent fills in what a coding agent's own headers tell and the control headers do
// not.
func readAgent(header http.Header, r *storage.Record) {
	first := func(name string) string {
		if values := header[name]; len(values) > 0 {
			return edgeText(values[0])
		}
		return ""
	}
	for _, a := range agents {
		if r.SessionID == "" {
			r.SessionID = first(a.session)
		}
		for _, p := range a.properties {
			if v := first(p.header); v != "" {
				addProperty(r, p.property, v)
			}
		}
	}
}

// ReadUser fills in the user, and the session, that the body of a request names
// where no header does. Claude Code names both in one.
func ReadUser(r *storage.Record, id string) {
	if r.RequestOmitted || id == "" { // it is content, and omitted with the rest of the request
		return
	}
	user, session := strings.ToValidUTF8(id, ""), ""
	if v := gjson.Parse(id); v.IsObject() && plugins.ValidJSON([]byte(id)) {
		user, session = cmp.Or(v.Get("account_uuid").Str, v.Get("device_id").Str), v.Get("session_id").Str
	} else if before, after, ok := strings.Cut(id, "_session_"); ok && strings.HasPrefix(before, "user_") {
		user, session = before, after
		if device, account, ok := strings.Cut(before, "_account_"); ok {
			user = cmp.Or(account, device)
		}
	}
	r.UserID = cmp.Or(r.UserID, user)
	if r.SessionID == "" && session != "" {
		r.SessionID, r.Properties = session, maps.Clone(r.Properties) // other responses of a WebSocket have them, too
		SessionProperties(r)
	}
}

// addProperty adds a property that the caller has not set.
func addProperty(r *storage.Record, name, value string) {
	if r.Properties == nil {
		r.Properties = make(map[string]string)
	}
	if _, set := r.Properties[name]; !set {
		r.Properties[name] = value
	}
}
