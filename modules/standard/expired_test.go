package standard

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/tidwall/gjson"
)

// Each route that needs a key refuses a token that has expired, and names the command that gets a
// new one. The metadata tells that command where.
func TestExpiredTokens(t *testing.T) {
	s := serveConfig(t, strings.Replace(siteConfig, "audience walker\n", "audience walker\n\t\t\t\tclient_id weir-cli\n", 1))
	expired := oidctest.SignIDToken(s.signs, "one", oidc.ES256, fmt.Sprintf(`{"iss":%q,"sub":"ada","aud":"walker","exp":%d,"role":"admin"}`, s.from, time.Now().Add(-time.Hour).Unix()))
	refused := 0
	for _, r := range routes(t) {
		switch {
		case r.handler == "llm_ui", r.handler == "llm_echo", r.handler == "llm_health":
			continue // llm_ui has sessions of its own, the others no keys
		case strings.HasSuffix(r.Path, "openapi.json"), strings.HasPrefix(r.Path, "/v1/models"), strings.HasPrefix(r.Path, "/.well-known/"):
			continue // for callers without a key
		}
		header := []string{"Authorization", "Bearer " + expired}
		if r.handler == "llm_log" {
			header[0] = "Service-Auth" // the other one is the vendor's
		}
		if r.Socket {
			header = append(header, "Connection", "Upgrade", "Upgrade", "websocket", "Sec-Websocket-Version", "13", "Sec-Websocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
		}
		a := s.send(r.Method, s.path(r), "none", jsonType, []byte(`{}`), header...)
		if a.status != http.StatusUnauthorized || !strings.Contains(a.body, "run `weir login "+s.url+"`") {
			t.Errorf("%s: %d %s", r, a.status, a.body)
		}
		refused++
	}
	if refused < 50 {
		t.Errorf("only %d routes", refused)
	}
	a := s.send(http.MethodGet, "/.well-known/oauth-protected-resource", "", "", nil)
	if got := gjson.Get(a.body, "weir_logins.0"); gjson.Get(a.body, "resource").Str != s.url || gjson.Get(a.body, "authorization_servers.0").Str != s.from ||
		got.Get("client_id").Str != "weir-cli" || got.Get("audience").Str != "walker" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
