package llmcommand

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Flags of budgets and alert rules are what the body says, and no more.
func TestBudgetsAreSet(t *testing.T) {
	t.Setenv(keyEnv, "secret")
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = r.Method + " " + r.URL.EscapedPath() + " " + string(body)
		_, _ = io.WriteString(w, `{"data":null,"error":null}`)
	}))
	t.Cleanup(server.Close)
	for want, args := range map[string][]string{
		`POST /v1/budgets {"limit":"5.00","name":"team a","quantity":"usd"}`: {"set", "team a", "5.00"},
		`POST /v1/budgets {"filter":{"request_response_rmt":{"project":{"equals":"search"}}},"limit":"9","name":"x","per":"key","quantity":"requests","timezone":"Europe/Berlin","window":"day"}`: {
			"set", "x", "9", "--quantity", "requests", "--window", "day", "--timezone", "Europe/Berlin", "--per", "key", "--project", "search",
		},
		`POST /v1/budgets {"cut":true,"filter":{"request_response_rmt":{"model":{"contains":"opus"}}},"limit":"5","name":"y","observe":true,"on_unpriced":"pass","quantity":"usd","since":"2026-11-01","stages":[{"at":80},{"at":95,"use":"small"}],"trust":true,"wait":"5s"}`: {
			"set", "y", "5", "--for", "model~opus", "--alert", "80,95=small", "--trust", "--observe", "--cut", "--wait", "5s", "--on-unpriced", "pass", "--since", "2026-11-01",
		},
		"DELETE /v1/budgets/team%20a ": {"delete", "team a"},
		`POST /v1/alerts/rules {"filter":{"request_response_rmt":{"model":{"contains":"opus"}}},"name":"dear","operator":"\u003e=","over":"1d","per":"user","than":"last_week","threshold":1.5,"to":["ops"],"total":"cost"}`: {
			"set", "dear", "cost >= 1.5", "--over", "1d", "--than-last-week", "--for", "model~opus", "--per", "user", "--to", "ops",
		},
		"DELETE /v1/alerts/rules/dear ": {"delete", "dear"},
		`POST /v1/budgets/try {"budget":{"limit":"5","name":"trial","per":"user","quantity":"usd","trust":true},"from":"2026-11-01T00:00:00.000Z","limit":0}`: {
			"try", "5", "--per", "user", "--since", "2026-11-01T00:00:00Z",
		},
	} {
		command := budgetCommand
		if strings.Contains(want, "/v1/alerts/") {
			command = alertCommand
		}
		if _, err := run(t.Context(), command, io.Discard, append(args, "--address", server.URL)...); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}

// Each account of a budget is a row, and so is a budget that counts nothing yet.
func TestBudget(t *testing.T) {
	t.Setenv(keyEnv, "secret")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/budgets" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		_, _ = io.WriteString(w, `{"data":{"items":[
			{"name":"all","limit":500,"quantity":"usd","window":"month","timezone":"UTC","per":null,"begins_at":"2026-11-01T00:00:00.000Z","ends_at":"2026-12-01T00:00:00.000Z","values":1,
				"accounts":[{"value":null,"spent":1.5,"reserved":0.25,"remaining":498.25}]},
			{"name":"each","limit":20,"quantity":"usd","window":"total","timezone":"UTC","per":"user","begins_at":null,"ends_at":null,"values":2,
				"accounts":[{"value":"ada","spent":2,"reserved":0,"remaining":18},{"value":"","spent":1,"reserved":0,"remaining":19}]},
			{"name":"idle","filter":{"left":{"request_response_rmt":{"project":{"equals":"search"}}},"operator":"and","right":{"request_response_rmt":{"properties":{"Team":{"equals":"blue"}}}}},"limit":1,"quantity":"usd","window":"day","timezone":"UTC","per":null,"begins_at":null,"ends_at":null,"values":0,"accounts":[]}],"next":null},"error":null}`)
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	if _, err := run(t.Context(), budgetCommand, &out, "--address", server.URL, "--format", "csv", "--utc"); err != nil {
		t.Fatal(err)
	}
	want := `budget,for,window,per,value,counts,limit,spent,reserved,remaining,would refuse,ends
all,all,month,,,usd,500,1.5,0.25,498.25,,2026-12-01T00:00:00.000Z
each,all,total,user,ada,usd,20,2,0,18,,
each,all,total,user,(without a user),usd,20,1,0,19,,
idle,project=search and Team=blue,day,,,usd,1,,,,,
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}
