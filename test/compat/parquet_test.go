package compat

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestParquet has DuckDB read exports: their counts and sums are those of the API, to the nanodollar.
func TestParquet(t *testing.T) {
	if !*withClients {
		t.Skip("DuckDB needs Python: see README.md, then go test ./test/compat -compat")
	}
	w := startQuickstart(t, "http://127.0.0.1:1")
	const calls = 40
	for i := range calls {
		body := fmt.Sprintf(`{"model":"echo-1","messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", i+1))
		r, err := http.Post(w.url+"/echo/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	var totals gjson.Result
	await(t, "the records", func() bool {
		r, err := http.NewRequest("POST", w.url+"/v1/metrics/query", strings.NewReader(`{"bucket":"none"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer weir-quickstart")
		r.Header.Set("Content-Type", "application/json")
		_, _, answer := do(t, r)
		totals = gjson.GetBytes(answer, "data.totals")
		return totals.Get("requests").Int() == calls
	})
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for format, query := range map[string]string{
		"parquet":       `SELECT count(*), sum(cost), sum(prompt_tokens + completion_tokens) FROM calls`,
		"focus-parquet": `SELECT count(*), sum(BilledCost), sum(ConsumedQuantity)::BIGINT FROM calls`,
	} {
		folder := t.TempDir()
		export := exec.CommandContext(t.Context(), program, "export", "--format", format, "--folder", folder, "--address", w.url)
		export.Env = append(os.Environ(), beWeir+"=1", "WEIR_API_KEY=weir-quickstart")
		if out, err := export.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		python := exec.CommandContext(t.Context(), "python/.venv/bin/python", "python/parquet.py", filepath.Join(folder, "*.parquet"), query)
		python.Stderr = os.Stderr
		out, err := python.Output()
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`["%d", "%.9f", "%d"]`, calls, totals.Get("cost").Num, totals.Get("total_tokens").Int())
		if got := gjson.ParseBytes(out).Get("0.0").Raw; got != want {
			t.Errorf("%s: DuckDB finds %s, the API %s", format, got, want)
		}
	}
}
