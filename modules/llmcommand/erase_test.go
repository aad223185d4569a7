package llmcommand

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Holds are placed with a reason, listed and lifted.
func TestHold(t *testing.T) {
	t.Setenv(keyEnv, "secret")
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = strings.TrimSpace(r.Method + " " + r.URL.String() + " " + string(body))
		hold := `{"id":"hold_1","filter":"all","reason":"case 4711","placed_at":"2026-11-29T09:00:00.000Z","placed_by":"key_0123"}`
		if r.Method == http.MethodGet {
			hold = `{"items":[` + hold + `],"next":null}`
		}
		_, _ = io.WriteString(w, `{"data":`+hold+`,"error":null}`)
	}))
	t.Cleanup(server.Close)
	for _, test := range []struct {
		args       []string
		sent, want string // "" if nothing may be sent
	}{
		{[]string{"place", "user=ada", "--reason", "case 4711"}, `POST /v1/holds {"filter":{"request_response_rmt":{"user_id":{"equals":"ada"}}},"reason":"case 4711"}`, "case 4711"},
		{[]string{"place", "user=ada"}, "", ""},
		{[]string{"place", "--reason", "case 4711"}, "", ""},
		{[]string{"place", "{}", "--reason", "case 4711"}, "", ""},
		{[]string{"list"}, "GET /v1/holds?limit=200", "hold_1"},
		{[]string{"lift", "hold_1"}, "DELETE /v1/holds/hold_1", "hold_1 is lifted\n"},
		{[]string{"lift"}, "", ""},
	} {
		got = ""
		var out bytes.Buffer
		_, err := run(t.Context(), holdCommand, &out, append(test.args, "--address", server.URL)...)
		if got != test.sent || (err == nil) != (test.sent != "") || !strings.Contains(out.String(), test.want) {
			t.Errorf("%q: %s, %v, %q", test.args, got, err, out.String())
		}
	}
}

// Only --yes erases, and only with a filter.
func TestErase(t *testing.T) {
	t.Setenv(keyEnv, "secret")
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = r.Method + " " + r.URL.String() + " " + string(body)
		erasure := `{"id":"6","state":"pending","requested_at":"2026-11-29T09:00:00.000Z","requested_by":"key_0123","done_at":null,"searched":["user_id equals"],"records":1234}`
		if r.Method == http.MethodGet {
			erasure = `{"items":[` + erasure + `],"next":null}`
		}
		_, _ = io.WriteString(w, `{"data":`+erasure+`,"error":null}`)
	}))
	t.Cleanup(server.Close)
	const filter = `{"filter":{"request_response_rmt":{"user_id":{"equals":"ada"}}}`
	for _, test := range []struct {
		args  []string
		want  string // "" if nothing may be sent
		notes string
	}{
		{[]string{"user=ada", "--content"}, `POST /v1/erasures {"dry_run":true,` + filter[1:] + `,"what":"content"}`, "Nothing is erased. --yes erases this.\n"},
		{[]string{"user=ada", "--content", "--yes"}, `POST /v1/erasures {"dry_run":false,` + filter[1:] + `,"what":"content"}`, ""},
		{[]string{"user=ada", "--identity"}, `POST /v1/erasures {"dry_run":true,` + filter[1:] + `,"what":"identity"}`, "Nothing is erased. --yes erases this.\n"},
		{[]string{"user=ada", "--record", "--yes"}, `POST /v1/erasures {"dry_run":false,` + filter[1:] + `,"what":"record"}`, ""},
		{[]string{"user=ada", "--record", "--content", "--yes"}, "", ""},
		{[]string{"--record", "--yes"}, "", ""},
		{[]string{"{}", "--record", "--yes"}, "", ""},
		{[]string{"user=ada", "{}", "--record", "--yes"}, "", ""},
		{[]string{"all", "--record"}, `POST /v1/erasures {"dry_run":true,"filter":"all","what":"record"}`, "Nothing is erased. --yes erases this.\n"},
		{nil, "GET /v1/erasures?limit=200 ", ""},
		{[]string{"--content", "--yes"}, "", ""},
		{[]string{"--yes"}, "", ""},
		{[]string{"user=ada", "--yes"}, "", ""},
		{[]string{"nothing=1", "--content", "--yes"}, "", ""},
	} {
		got = ""
		var out bytes.Buffer
		notes, err := run(t.Context(), eraseCommand, &out, append(test.args, "--address", server.URL)...)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: %s, %v, want %s", test.args, got, err, test.want)
		}
		if err == nil && (notes != test.notes || !strings.Contains(out.String(), "user_id equals")) {
			t.Errorf("%q: %q, %q", test.args, notes, out.String())
		}
	}
}
