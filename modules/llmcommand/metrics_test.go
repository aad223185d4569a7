package llmcommand

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// answering plays an endpoint that answers data, beside an export of nothing, and tells what it was asked.
func answering(t *testing.T, path, data string) (address string, asked *gjson.Result) {
	t.Helper()
	asked = new(gjson.Result)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = gjson.ParseBytes(body)
		if r.URL.Path == "/v1/export" {
			w.Header().Set("Content-Type", "application/x-ndjson")
			return
		}
		if r.URL.Path != path || !json.Valid(body) {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, `{"data":`+data+`,"error":null}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

const someTotals = `"requests":1200,"errors":3,"cost":0.5,"cache_loss":0.25,"prompt_tokens":70000,"completion_tokens":null,"latency":{"p50":900,"p95":1500,"p99":2000},"time_to_first_token":{"p50":null,"p95":300,"p99":null}}`

func TestQueryBy(t *testing.T) {
	address, asked := answering(t, "/v1/metrics/query", `{"groups":[
		{"key":"gpt-5","totals":{`+someTotals+`,"points":[{"range_start":"2026-11-20T10:00:00.000Z",`+someTotals+`,{"range_start":"2026-11-20T11:00:00.000Z","requests":0}]},
		{"key":null,"others":7,"totals":{`+someTotals+`,"points":[{"range_start":"2026-11-20T11:00:00.000Z",`+someTotals+`]}]}`)
	var out bytes.Buffer
	if _, err := run(t.Context(), queryCommand, &out, "--address", address, "--utc", "--by", "model,hour", "--p95", "--limit", "1", "status>=400"); err != nil {
		t.Fatal(err)
	}
	want := `
MODEL       TIME                 REQUESTS  ERRORS      IN  OUT       COST    P95  TTFT P95
gpt-5       2026-11-20 10:00:00     1,200       3  70,000    -  $0.500000  1.50s     300ms
(7 others)  2026-11-20 11:00:00     1,200       3  70,000    -  $0.500000  1.50s     300ms
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("table%s\nwant%s", got, want)
	}
	if got, want := asked.Raw, `{"bucket":"1h","filter":{"request_response_rmt":{"status":{"gte":400}}},"groupBy":"model","limit":1}`; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	out.Reset()
	if _, err := run(t.Context(), queryCommand, &out, "--address", address, "--by", "property.Env", "--format", "csv"); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "property.Env,requests,errors,in,out,cost\ngpt-5,1200,3,70000,,0.5\n(7 others),1200,3,70000,,0.5\n"; got != want {
		t.Errorf("CSV %q, want %q", got, want)
	}
	if got := asked.Get("groupBy").Str + asked.Get("bucket").Str; got != "property:Envnone" {
		t.Errorf("asked %s", asked)
	}
	out.Reset()
	if _, err := run(t.Context(), queryCommand, &out, "--address", address, "--by", "cache_miss_reason", "--format", "csv"); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "cache_miss_reason,requests,errors,in,out,cost,cache loss\ngpt-5,1200,3,70000,,0.5,0.25\n(7 others),1200,3,70000,,0.5,0.25\n"; got != want {
		t.Errorf("CSV %q, want %q", got, want)
	}
	for _, args := range [][]string{{"--by", "model,user"}, {"--by", "hour,day"}, {"--by", "model", "--sort", "cost"}, {"--by", "model", "--format", "xml"}, {"--by", "mdoel"}} {
		if _, err := run(t.Context(), queryCommand, &out, append(args, "--address", address)...); err == nil || strings.Contains(err.Error(), "groupBy") {
			t.Errorf("%v is taken", args)
		}
	}
}

// A cost of which only calls are known that cost nothing is unknown.
func TestQueryByUnknownCost(t *testing.T) {
	address, _ := answering(t, "/v1/metrics/query", `{"groups":[
		{"key":"vllm","totals":{"requests":3,"errors":1,"cost":0,"requests_without_cost":2}},
		{"key":"free","totals":{"requests":3,"errors":0,"cost":0,"requests_without_cost":0}},
		{"key":"openai","totals":{"requests":3,"errors":0,"cost":0.5,"requests_without_cost":1}}]}`)
	var out bytes.Buffer
	if _, err := run(t.Context(), queryCommand, &out, "--address", address, "--by", "provider"); err != nil {
		t.Fatal(err)
	}
	want := `
PROVIDER  REQUESTS  ERRORS  IN  OUT       COST
vllm             3       1   -    -          -
free             3       0   -    -  $0.00
openai           3       0   -    -  $0.500000
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("table%s\nwant%s", got, want)
	}
}

func TestFacetsTable(t *testing.T) {
	address, asked := answering(t, "/v1/facets/query", `{"count":12,"fields":[
		{"field":"user_id","values":[{"value":"ada","count":9},{"value":"","count":2}],"others":1},{"field":"status","values":[{"value":"200","count":12}],"others":0}]}`)
	var out bytes.Buffer
	if _, err := run(t.Context(), facetsCommand, &out, "--address", address, "--fields", "user,status", "model=x"); err != nil {
		t.Fatal(err)
	}
	want := `
FIELD   VALUE     REQUESTS
user    ada              9
user                     2
user    (others)         1
status  200             12
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("table%s\nwant%s", got, want)
	}
	if got := asked.Get("fields").Raw; got != `["user_id","status"]` || !strings.Contains(asked.Get("filter").Raw, "model") {
		t.Errorf("asked %s", asked)
	}
}
