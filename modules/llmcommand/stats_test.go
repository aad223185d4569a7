package llmcommand

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

const status = `[
	{"store":"default","pending_records":12,"pending_bytes":34567,"raw_segments":1,"raw_bytes":1000000,"sealed_segments":2,
	 "sealed_bytes":2500000,"appended":123456,"drained":123444,"lost":{"journal_full":2,"corrupt":1},
	 "error":"database is locked","failing_since":"2026-11-20T15:04:05Z"},
	{"store":"eu","pending_records":0,"pending_bytes":0,"raw_segments":0,"raw_bytes":0,"sealed_segments":0,"sealed_bytes":0,
	 "appended":0,"drained":0,"lost":{}}
]`

const balances = `[
	{"store":"default","seen":1250,"recorded":1234,"waiting":5,"in_flight":3,"lost":8,"unaccounted":0,"losses":[
		{"reason":"journal_full","entries":9,"exchanges":6,"from":"2026-11-20T15:04:05Z","to":"2026-11-20T15:04:06Z"},
		{"reason":"interrupted","entries":2,"exchanges":2,"from":"2026-11-20T16:04:05Z","to":"2026-11-20T16:04:05Z"}]},
	{"store":"eu","seen":0,"recorded":0,"waiting":0,"in_flight":0,"lost":0,"unaccounted":0,"losses":[]}
]`

// aProcess is an answer of /llm/process, and processLine the first line that commands make
// of it.
const (
	aProcess    = `{"process":4711,"version":"v0.1.0","commit":"a1b2c3d","sites":[":443",":80"],"stores":["sqlite:/var/lib/weir/weir.db"]}`
	processLine = "Weir v0.1.0, process 4711, serves :443, :80, keeps records in sqlite:/var/lib/weir/weir.db"
)

func TestStats(t *testing.T) {
	for _, unaccounted := range []string{"0", "2"} {
		balances := strings.Replace(balances, `"unaccounted":0`, `"unaccounted":`+unaccounted, 1)
		mux := http.NewServeMux()
		for path, answer := range map[string]string{"GET /llm/process": aProcess, "GET /llm/status": status, "GET /weir/integrity": balances} {
			mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) })
		}
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		admin := server.Listener.Addr().String()

		var out bytes.Buffer
		_, err := run(t.Context(), statsCommand, &out, "--admin", admin)
		if (err != nil) != (unaccounted != "0") || err != nil && !strings.Contains(err.Error(), "2 exchanges of the store default") {
			t.Errorf("%s unaccounted: %v", unaccounted, err)
		}
		local := func(hour, second int) string {
			return time.Date(2026, 11, 20, hour, 4, second, 0, time.UTC).Local().Format(time.DateTime)
		}
		want := "\n" + processLine + `
STORE     SEEN  RECORDED      WAITING  IN FLIGHT  LOST  BODIES  STATE
default  1,250     1,234  5 (34.6 kB)          3     8  3.5 MB  failing since ` + local(15, 5) + `: database is locked
eu           0         0      0 (0 B)          0     0     0 B  ok
These are the calls that passed through Weir; those that were reported or imported do not count.
default lost 6 exchanges (9 entries) from ` + local(15, 5) + ` to ` + local(15, 6) + `: journal_full
default lost 2 exchanges (2 entries) from ` + local(16, 5) + ` to ` + local(16, 5) + `: interrupted
`
		if got := "\n" + out.String(); got != want {
			t.Errorf("got%swant%s", got, want)
		}

		out.Reset()
		if _, err := run(t.Context(), statsCommand, &out, "--admin", admin, "--format", "json"); err != nil {
			t.Fatal(err)
		}
		if got, want := gjson.Parse(out.String()), gjson.Parse(`{"integrity":`+balances+`,"status":`+status+`}`); got.Get("@ugly").Raw != want.Get("@ugly").Raw {
			t.Errorf("--format json shows %s", got)
		}
	}
}

func TestStatsErrors(t *testing.T) {
	answers := func(body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	for _, admin := range []string{"127.0.0.1:1", "::::", answers(""), answers("<html>"), answers(`{"error":"x"}`)} {
		if _, err := run(t.Context(), statsCommand, new(bytes.Buffer), "--admin", admin); err == nil || !strings.Contains(err.Error(), "admin endpoint "+admin) {
			t.Errorf("%s: %v, want an error that names it", admin, err)
		}
	}
}
