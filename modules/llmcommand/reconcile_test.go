package llmcommand

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

const adminKey = "sk-admin-not-for-logs"

// openAIBill plays OpenAI's usage and costs of one day, with a number of input tokens.
func openAIBill(t *testing.T, input int64, dollars string) (address string) {
	t.Helper()
	return openAIBillOf(t, "gpt-4o-mini-2024-07-18", input, dollars)
}

// openAIBillOf is openAIBill of another model.
func openAIBillOf(t *testing.T, model string, input int64, dollars string) (address string) {
	t.Helper()
	start := time.Date(2026, 10, 5, 0, 0, 0, 0, time.UTC).Unix()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+adminKey {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error": {"message": "no such key: %s"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			return
		}
		results := ""
		switch r.URL.Path {
		case "/v1/organization/usage/completions":
			results = fmt.Sprintf(`{"model": %q, "input_tokens": %d, "output_tokens": 100, "num_model_requests": 1, "api_key_id": "key_a", "batch": false, "service_tier": "default"}`, model, input)
		case "/v1/organization/costs":
			results = fmt.Sprintf(`{"amount": {"value": %s, "currency": "usd"}, "line_item": "%s, input"}`, dollars, model)
		}
		fmt.Fprintf(w, `{"object": "page", "data": [{"object": "bucket", "start_time": %d, "results": [%s]}], "has_more": false, "next_page": null}`, start, results)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// oneCall is an API with the record of a call of OpenAI.
func oneCall() *api {
	at := time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)
	r := &storage.Record{
		ID: id(1), CreatedAt: storage.Millis(at), RespondedAt: storage.Millis(at.Add(time.Second)), Status: plugins.Known(200),
		Provider: "openai", Model: "gpt-4o-mini-2024-07-18", ResponseModel: "gpt-4o-mini-2024-07-18", ServiceTier: "default",
		Usage: plugins.Usage{Input: plugins.Known(1000), Output: plugins.Known(100)},
	}
	r.Cost = catalog.Default().Cost(r.Provider, r.Model, r.Usage, catalog.Conditions{At: at})
	other := *r // of another provider
	other.ID, other.Provider = id(2), "anthropic"
	return &api{records: []*storage.Record{r, &other}}
}

func TestReconcile(t *testing.T) {
	t.Setenv("OPENAI_ADMIN_KEY", adminKey)
	for name, tc := range map[string]struct {
		input   int64
		dollars string
		format  string
		want    []string
		code    string
	}{
		"agrees": {1000, "0.00021", "table", []string{"The bill and the records agree to the cent from 2026-10-01 to 2026-10-31"}, ""},
		"differs": {
			3000, "0.00051", "table",
			[]string{"2026-10-05", "outside", "2,000", "$0.000300", "outside            1  $0.000300  look up the key", `weir query 'provider="openai" since=2026-10-05 until=2026-10-06 model="gpt-4o-mini-2024-07-18"'`},
			"exiting with status 3",
		},
		"JSON": {3000, "0.00051", "json", []string{`"agrees": false`, `"reason": "outside"`, `"input": 2000`, `"cost": 0.0003`}, "exiting with status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			stderr, err := run(t.Context(), reconcileCommand, &out, "openai", "--month", "2026-10", "--address", oneCall().serve(t),
				"--provider-url", openAIBill(t, tc.input, tc.dollars), "--format", tc.format)
			if tc.code == "" && err != nil || tc.code != "" && (err == nil || err.Error() != tc.code) {
				t.Errorf("%v, expected %q", err, tc.code)
			}
			for _, text := range tc.want {
				if !strings.Contains(out.String(), text) {
					t.Errorf("no %q in\n%s", text, &out)
				}
			}
			if strings.Contains(out.String()+stderr, adminKey) {
				t.Error("the key is shown")
			}
			for line := range strings.Lines(out.String()) {
				if _, command, ok := strings.Cut(line, "weir query '"); ok && tc.format == "table" {
					if _, err := question.ParseFilter([]string{strings.TrimSuffix(command, "'\n")}, time.Now()); err != nil {
						t.Errorf("%s: %v", command, err)
					}
				}
			}
			if tc.format == "json" && !gjson.Valid(out.String()) {
				t.Errorf("no JSON: %s", &out)
			}
		})
	}
}

// A month of which neither the bill nor the records have anything that can be compared does not agree to the
// cent. What was billed or recorded beside that is not denied.
func TestReconcileOfNothing(t *testing.T) {
	t.Setenv("OPENAI_ADMIN_KEY", adminKey)
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data": [], "has_more": false}`)
	}))
	defer empty.Close()
	subscription := oneCall()
	subscription.records[0].Subscription = true
	for _, c := range []struct {
		month, bill    string
		records        *api
		isSubscription bool
	}{
		{"2026-08", openAIBill(t, 1000, "0.00021"), oneCall(), false},
		{"2026-10", empty.URL, subscription, true},
	} {
		var out bytes.Buffer
		_, err := run(t.Context(), reconcileCommand, &out, "openai", "--month", c.month, "--address", c.records.serve(t), "--provider-url", c.bill)
		if err != nil || !strings.Contains(out.String(), "Nothing that can be compared was billed or recorded from "+c.month+"-01 to "+c.month+"-31: check the month") ||
			strings.Contains(out.String(), "calls that a subscription paid") != c.isSubscription {
			t.Errorf("%v\n%s", err, &out)
		}
	}
}

// Differences are priced by the prices of the server that recorded the calls.
func TestReconcileByTheServersPrices(t *testing.T) {
	t.Setenv("OPENAI_ADMIN_KEY", adminKey)
	path := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(path, []byte(`{"providers": [{"id": "openai", "models": [{"id": "acme-1", "prices": [{"input": "2", "output": "10"}]}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.Default().With(path)
	if err != nil {
		t.Fatal(err)
	}
	server := oneCall()
	server.prices = prices
	call := server.records[0]
	call.Model, call.ResponseModel = "acme-1", "acme-1"
	call.Cost = prices.Cost("openai", "acme-1", call.Usage, catalog.Conditions{At: call.CreatedAt.Time()})
	var out bytes.Buffer
	_, err = run(t.Context(), reconcileCommand, &out, "openai", "--month", "2026-10", "--address", server.serve(t),
		"--provider-url", openAIBillOf(t, "acme-1", 3000, "0.007"), "--format", "json")
	if err == nil {
		t.Fatal("a bill with other tokens agrees")
	}
	report := gjson.Parse(out.String())
	if d := report.Get("differences.0"); d.Get("reason").Str != "outside" || d.Get("cost").Num != 0.004 || report.Get("differences.#").Int() != 1 {
		t.Errorf("the differences are %s", report.Get("differences"))
	}
}

func TestReconcileRefuses(t *testing.T) {
	t.Setenv("OPENAI_ADMIN_KEY", "sk-wrong")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(adminKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address, bill := oneCall().serve(t), openAIBill(t, 1000, "0.00021")
	for want, args := range map[string][]string{
		"others can read the arguments":     {"openai", "--admin-key", adminKey},
		"name the files of the export":      {"aws"},
		"from its API, not from x.csv":      {"openai", "x.csv"},
		"stat /nowhere: no such file":       {"google", "/nowhere"},
		"no bill that can be read":          {"mistral"},
		"401 Unauthorized: no such key: …;": {"openai"},
		`"october" is not a month`:          {"openai", "--month", "october"},
		"until must be after since":         {"openai", "--since", "2026-10-02", "--until", "2026-10-02"},
		"give --month, or --since and":      {"openai", "--since", "2026-10-02"},
		"{file./nowhere} is empty, or":      {"openai", "--admin-key", "{file./nowhere}"},
		"--admin-key":                       {"openai", "--admin-key", "{env.NO_SUCH_VARIABLE}"},
		"expected one of table, json, not ": {"openai", "--format", "csv"},
		"requires at least 1 arg(s)":        {},
		"http://127.0.0.1:1/v1/organization/usage/completions does not answer: dial tcp": {"openai", "--provider-url", "http://127.0.0.1:1"},
	} {
		args = append([]string{"--address", address, "--provider-url", bill}, args...)
		_, err := run(t.Context(), reconcileCommand, io.Discard, args...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), adminKey) || strings.Contains(err.Error(), "sk-wrong") {
			t.Errorf("%q: %v, expected %q", args, err, want)
		}
		isRead := slices.ContainsFunc([]string{"stat", "401", "http:"}, func(begin string) bool { return strings.HasPrefix(want, begin) })
		if _, misused := errors.AsType[misuse](err); misused == isRead && len(args) > 4 { // cobra counts arguments
			t.Errorf("%q is a wrong argument: %t", args, misused)
		}
	}
	if _, err := run(t.Context(), reconcileCommand, io.Discard, "openai", "--month", "2026-10", "--address", address, "--provider-url", bill, "--admin-key", "{file."+file+"}"); err != nil {
		t.Error(err)
	}
}
