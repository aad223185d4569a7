package llmcontrol_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
)

// TestAlerts tells a receiver of webhooks what the rules of the configuration and those of the API
// find in the records of a store.
func TestAlerts(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	messages := make(chan gjson.Result, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "." + string(body)))
		if r.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
			t.Errorf("the signature is wrong: %v", r.Header)
		}
		messages <- gjson.ParseBytes(body)
	}))
	defer receiver.Close()
	s := newSite(t, `
		org initech {
			key initech-admin admin
			key initech-agent gateway
			channel ops webhook `+receiver.URL+` {
				secret whsec_`+base64.StdEncoding.EncodeToString(key)+`
			}
			budget small 0.10 total {
				on_unpriced pass
			}
			alert busy {
				when requests >= 2 over 6h
				for model echo-1
				per user
				to ops
			}
		}`)
	const admin = "initech-admin"
	next := func() gjson.Result {
		t.Helper()
		select {
		case m := <-messages:
			return m
		case <-time.After(10 * time.Second):
			t.Fatal("no message")
			return gjson.Result{}
		}
	}

	if got := s.must(admin, "GET", "/v1/alerts/channels", ""); got.Get("items").Raw != `[{"name":"ops","kind":"webhook"}]` {
		t.Error(got.Raw)
	}
	if d := s.must(admin, "POST", "/v1/alerts/channels/ops/test", ""); d.Get("delivered_at").Str == "" || d.Get("attempts").Int() != 1 {
		t.Error(d.Raw)
	}
	if m := next(); m.Get("type").Str != "alert.test" || m.Get("data.organization").Str != "initech" {
		t.Error(m.Raw)
	}

	made := s.must(admin, "POST", "/v1/alerts/rules", `{"name":"slow","total":"latency.p95","operator":">=","threshold":0,"over":"10m","to":["ops"]}`)
	if made.Get("condition").Str != "latency.p95 >= 0 over 10m" || made.Get("over").Str != "10m" || !strings.HasPrefix(made.Get("id").Str, "alert_rule_") {
		t.Error(made.Raw)
	}
	for body, want := range map[string]int{
		`{"name":"slow","total":"cost","operator":">","threshold":1,"over":"1h","to":["elsewhere"]}`:                    400,
		`{"name":"slow","total":"cost","operator":">","threshold":1,"over":"1h","to":["ops"],"url":"http://localhost"}`: 400,
		`{"name":"busy","total":"cost","operator":">","threshold":1,"over":"1h","to":["ops"]}`:                          409,
	} {
		if status, answer := s.as(admin, "POST", "/v1/alerts/rules", body); status != want {
			t.Errorf("%s: %d %s", body, status, answer.Raw)
		}
	}
	if status, answer := s.as("acme-admin", "POST", "/v1/alerts/rules", `{"name":"slow","total":"cost","operator":">","threshold":1,"over":"1h","to":["ops"]}`); status != 409 {
		t.Errorf("another organisation uses the channel: %d %s", status, answer.Raw)
	}

	for range 2 {
		if status, answer := s.call("initech-agent", "echo/echo-1"); status != http.StatusOK {
			t.Fatal(answer.Raw)
		}
	}
	for _, store := range stores.InUse() {
		if err := store.Opened().Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	app, err := caddy.ActiveContext().AppIfConfigured("llm")
	if err != nil {
		t.Fatal(err)
	}
	engine := app.(*llmapp.App).Alerts("initech")
	engine.Evaluate(t.Context(), time.Now().Add(time.Minute)) // windows end with the minute
	got := make(map[string]gjson.Result)
	for range 2 {
		m := next()
		got[m.Get("data.rule").Str] = m
	}
	if busy := got["busy"]; busy.Get("type").Str != "alert.firing" || busy.Get("data.value").Num != 2 || busy.Get("data.subject").Str != "claimed" {
		t.Error(busy.Raw)
	}
	if !got["slow"].Exists() {
		t.Error(got)
	}

	list := s.must(admin, "GET", "/v1/alerts?state=firing&limit=1", "")
	if list.Get("items.#").Int() != 1 || list.Get("next").Str == "" {
		t.Error(list.Raw)
	}
	id := got["busy"].Get("data.id").Str
	for range 4 { // the calls are over six hours ago
		engine.Evaluate(t.Context(), time.Now().Add(7*time.Hour))
	}
	for range 2 {
		if m := next(); m.Get("type").Str != "alert.resolved" || m.Get("data.resolved_at").Str == "" {
			t.Error(m.Raw)
		}
	}
	if list := s.must(admin, "GET", "/v1/alerts?state=firing", ""); list.Get("items.#").Int() != 0 {
		t.Error(list.Raw)
	}
	again := s.must(admin, "POST", "/v1/alerts/"+id+"/redeliver", "")
	if again.Get("deliveries.#").Int() != 2 || next().Get("data.id").Str != id {
		t.Error(again.Raw)
	}
	if f := s.must(admin, "GET", "/v1/alerts/"+id, ""); f.Get("rule").Str != "busy" || f.Get("resolved_at").Str == "" {
		t.Error(f.Raw)
	}
	if status, _ := s.as("acme-admin", "GET", "/v1/alerts/"+id, ""); status != 404 {
		t.Error("another organisation reads the alert")
	}
	s.must(admin, "DELETE", "/v1/alerts/rules/slow", "")
	if rules := s.must(admin, "GET", "/v1/alerts/rules", ""); rules.Get("items.#").Int() != 1 || rules.Get("items.0.id").Type != gjson.Null {
		t.Error(rules.Raw)
	}
	if status, answer := s.as(admin, "DELETE", "/v1/alerts/rules/busy", ""); status != 409 {
		t.Errorf("%d %s", status, answer.Raw)
	}
}
