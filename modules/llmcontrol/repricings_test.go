package llmcontrol_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A repricing changes the costs of the caller's organisation alone, once, and the audit log has it.
// Rows and totals agree afterwards, and content and feedback stay.
func TestRepricing(t *testing.T) {
	list := filepath.Join(t.TempDir(), "prices.json")
	setPrice := func(price string) {
		t.Helper()
		text := `{"providers":[{"id":"echo","models":[{"id":"echo-1","prices":[{"input":"` + price + `","output":"` + price + `"}]}]}]}`
		if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	setPrice("1")
	s := newSite(t, "catalog "+list)
	const admin, filter = "acme-admin", `{"filter":"all"}`
	for _, key := range []string{"acme-all", "acme-all", "globex-agent"} {
		if status, got := s.as(key, "POST", "/v1/responses", `{"model":"echo-1","input":"Hello"}`); status != http.StatusOK {
			t.Fatal(status, got.Raw)
		}
	}
	requests := func() float64 {
		sum := 0.0
		for _, r := range s.must(admin, "POST", "/v1/request/query", filter).Array() {
			sum += r.Get("cost").Num
		}
		return sum
	}
	for deadline := time.Now().Add(10 * time.Second); len(s.must(admin, "POST", "/v1/request/query", filter).Array()) != 2; {
		if time.Now().After(deadline) {
			t.Fatal("the calls are not recorded")
		}
	}
	before := requests()
	if got := s.must(admin, "POST", "/v1/repricings", filter); got.Get("changed").Int() != 0 || got.Get("records").Int() != 2 || got.Get("id").Str != "" {
		t.Error("nothing is to change:", got.Raw)
	}
	setPrice("3")
	s.load()
	preview := s.must(admin, "POST", "/v1/repricings", `{"filter":"all","dry_run":true}`)
	if preview.Get("changed").Int() != 2 || requests() != before {
		t.Error("the preview changes something:", preview.Raw)
	}
	done := s.must(admin, "POST", "/v1/repricings", filter)
	if done.Get("models").Raw != preview.Get("models").Raw || done.Get("id").Str == "" {
		t.Errorf("%s was announced as %s", done.Raw, preview.Raw)
	}
	if after := requests(); after < 2.999*before || after > 3.001*before {
		t.Errorf("the costs are %v, and were %v", after, before)
	}
	for _, r := range s.must(admin, "POST", "/v1/request/query", filter).Array() {
		if version := s.must(admin, "GET", "/v1/request/"+r.Get("request_id").Str, "").Get("price_version").Str; version != done.Get("price_version").Str {
			t.Errorf("the price version is %q", version)
		}
	}
	if again := s.must(admin, "POST", "/v1/repricings", filter); again.Get("changed").Int() != 0 {
		t.Error("it changes something again:", again.Raw)
	}
	if other := s.must("globex-admin", "POST", "/v1/repricings", `{"filter":"all","dry_run":true}`); other.Get("records").Int() != 1 || other.Get("changed").Int() != 1 {
		t.Error("another organisation:", other.Raw)
	}
	if event := s.must(admin, "GET", "/v1/audit", ""); event.Get("items.0.action").Str != "repricing.created" {
		t.Error(event.Raw)
	}
	for key, want := range map[string]int{"globex-agent": http.StatusForbidden, "": http.StatusUnauthorized} {
		if status, got := s.as(key, "POST", "/v1/repricings", filter); status != want {
			t.Errorf("%q: %d %s", key, status, got.Raw)
		}
	}
	for _, body := range []string{``, `{}`, `{"filter":{}}`, `{"filter":null}`, `{"filter":"some"}`, `{"filter":"all","more":1}`} {
		if status, got := s.as(admin, "POST", "/v1/repricings", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, status, got.Raw)
		}
	}
}
