package control

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/storage"
)

// ReadEdge fills in what ordinary headers tell about the caller, those of coding agents
// among them, and what the edge set with `vars`, which wins.
func ReadEdge(r *http.Request, countryHeader string, record *storage.Record) {
	if countryHeader != "" {
		record.CountryCode = edgeText(r.Header.Get(countryHeader))
	}
	record.Referrer = edgeText(redact.URL(r.Header.Get("Referer")))
	record.TraceID, record.SpanID = traceParent(r.Header.Get("Traceparent"))
	readAgent(r.Header, record)

	vars, _ := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	for _, v := range [...]struct {
		name  string
		field *string
	}{
		{"llm_org", &record.Org},
		{"llm_user_id", &record.UserID},
		{"llm_session_id", &record.SessionID},
		{"llm_country_code", &record.CountryCode},
	} {
		if set := edgeVar(vars, v.name); set != "" {
			*v.field = set
		}
	}
	record.Threat = strings.EqualFold(edgeVar(vars, "llm_threat"), "true")
}

func edgeVar(vars map[string]any, name string) string {
	v := vars[name]
	if v == nil {
		return ""
	}
	return caddy.ToString(v)
}

func edgeText(v string) string {
	return strings.ToValidUTF8(v[:min(len(v), maxID)], "")
}

// traceParent reads the W3C header: version, trace id, parent id, flags.
func traceParent(v string) (trace, span string) {
	if len(v) < 55 || v[2] != '-' || v[35] != '-' || v[52] != '-' || v[:2] == "ff" {
		return "", ""
	}
	trace, span = v[3:35], v[36:52]
	if !isID(trace) || !isID(span) {
		return "", ""
	}
	return trace, span
}

// isID is true of lower-case hexadecimal digits that are not all zero.
func isID(v string) bool {
	return strings.Trim(v, "0123456789abcdef") == "" && strings.Trim(v, "0") != ""
}
