package llmquery_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// An export has each request that its filter matches once, the oldest first, and
// the sums of what the metrics of the same filter say.
func TestExport(t *testing.T) {
	s := newSite(t)
	const records = 1203 // more than two pages
	j := s.journal("default")
	for i := range records {
		r := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "default", CreatedAt: storage.Timestamp(1_790_000_000_000 + i/5), Status: plugins.Known(200), Model: "m"}
		if i%3 > 0 {
			r.Cost, r.Usage.Input = plugins.KnownCost(plugins.Nanodollars(i)), plugins.Known(int64(i))
		}
		if err := j.Append(r, storagetest.Kept(r, &storage.Content{Request: storage.Body{Type: "text/plain", Data: fmt.Append(nil, "body ", i)}})); err != nil {
			t.Fatal(err)
		}
	}
	s.record("default", &storage.Record{Org: "acme", Model: "m"}, nil)
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	const filter = `"filter":{"request_response_rmt":{"model":{"equals":"m"}}}`
	response, answer := s.do("POST", "/v1/export", "root", "{"+filter+"}")
	if got := response.Header.Get("Content-Disposition"); response.StatusCode != http.StatusOK || !strings.HasPrefix(got, `attachment; filename="requests-`) || !strings.HasSuffix(got, `.ndjson"`) {
		t.Fatalf("%d %s %.300s", response.StatusCode, got, answer.Raw)
	}
	seen := make(map[string]bool)
	before, tokens, withoutCost := "", int64(0), int64(0)
	for line := range strings.Lines(answer.Raw) {
		r := gjson.Parse(line)
		seen[r.Get("request_id").Str] = true
		if at := r.Get("request_created_at").Str; at < before {
			t.Fatalf("%s comes behind %s", at, before)
		} else {
			before = at
		}
		tokens += r.Get("prompt_tokens").Int()
		if r.Get("cost").Type == gjson.Null {
			withoutCost++
		}
		if !strings.HasPrefix(r.Get("request_body").Str, "body ") {
			t.Fatalf("no body in %s", line)
		}
	}
	if len(seen) != records {
		t.Errorf("the export has %d requests, want %d", len(seen), records)
	}
	_, metrics := s.do("POST", "/v1/metrics/query", "root", "{"+filter+"}")
	totals := metrics.Get("data.totals")
	if totals.Get("requests").Int() != records || totals.Get("prompt_tokens").Int() != tokens || totals.Get("requests_without_cost").Int() != withoutCost {
		t.Errorf("the export adds up to %d tokens, and %d without cost; metrics are %s", tokens, withoutCost, totals)
	}
	_, answer = s.do("POST", "/v1/export", "root", "{"+filter+`,"includeContent":false,"timeFilter":{"endTimeUnixMs":1790000000000}}`)
	if lines := strings.Count(answer.Raw, "\n"); lines != 5 || strings.Contains(answer.Raw, "request_body") {
		t.Errorf("%d lines, %.300s", lines, answer.Raw)
	}
}

// A table has a row for each request, and no text that a spreadsheet runs.
func TestExportOfTable(t *testing.T) {
	s := newSite(t)
	texts := []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "plain", `quo"ted,`, "a=b", "line\nbreak", "日本"}
	for i, text := range texts {
		s.record("default", &storage.Record{Org: "default", CreatedAt: storage.Timestamp(1_790_000_000_000 + i), UserID: text, Cost: plugins.KnownCost(-5_000_000_000)}, nil)
	}
	response, _, body := s.fetch("POST", "/v1/export", "root", `{"format":"csv"}`)
	if got := response.Header.Get("Content-Type"); got != "text/csv; charset=utf-8" {
		t.Errorf("Content-Type %q", got)
	}
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || len(rows) != len(texts)+1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	column := make(map[string]int)
	for i, name := range rows[0] {
		column[name] = i
	}
	for i, text := range texts {
		want := text
		if i < 5 {
			want = "'" + text
		}
		if got := rows[i+1][column["request_user_id"]]; got != want {
			t.Errorf("%q is the cell %q, want %q", text, got, want)
		}
		if got := rows[i+1][column["cost"]]; got != "-5" {
			t.Errorf("the number -5 is the cell %q", got)
		}
	}
}

// A table has the columns that are asked for, in their order.
func TestExportOfChosenColumns(t *testing.T) {
	s := newSite(t)
	s.record("default", &storage.Record{Org: "default", UserID: "ada", Model: "m", Properties: map[string]string{"Team": "=care", "a.b": "c"}}, nil)
	_, _, body := s.fetch("POST", "/v1/export", "root", `{"format":"csv","columns":["property:Team","model","property:a.b","request_user_id"]}`)
	if want := "property:Team,model,property:a.b,request_user_id\n'=care,m,c,ada\n"; body != want {
		t.Errorf("the table is %q, want %q", body, want)
	}
	if _, _, body := s.fetch("POST", "/v1/export", "root", `{"columns":["model","properties","total_tokens"]}`); body != `{"model":"m","properties":{"Team":"=care","a.b":"c"},"total_tokens":null}`+"\n" {
		t.Errorf("the line is %q", body)
	}
	for _, wrong := range []string{`{"format":"csv","columns":["colour"]}`, `{"columns":["property:Team"]}`, `{"columns":["model"],"includeContent":true}`} {
		if response, answer := s.do("POST", "/v1/export", "root", wrong); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", wrong, response.StatusCode, answer)
		}
	}
}

// A line is a record, also where its bodies have line breaks between their values.
func TestBodiesWithLineBreaks(t *testing.T) {
	s := newSite(t)
	const body = "{\n  \"messages\": [\r\n    {\"content\": \"one\\ntwo\"}\n  ]\n}"
	s.record("default", &storage.Record{Org: "default", Dialect: plugins.Chat}, &storage.Content{
		Request: storage.Body{Type: "application/json", Data: []byte(body)}, Response: storage.Body{Type: "text/plain", Data: []byte("a\nb")},
	})
	for path, question := range map[string]string{"/v1/export": `{}`, "/v1/request/search": `{"filter":"all"}`} {
		_, answer := s.do("POST", path, "root", question)
		lines := slices.Collect(strings.Lines(answer.Raw))
		if len(lines) != 1 || !gjson.Valid(lines[0]) || strings.ContainsRune(answer.Raw, '\r') {
			t.Fatalf("%s: %d lines: %q", path, len(lines), answer.Raw)
		}
		record := gjson.Parse(lines[0])
		if record.Get("data").Exists() {
			record = record.Get("data.0")
		}
		if got := record.Get("request_body.messages.0.content").Str; got != "one\ntwo" {
			t.Errorf("%s: the content is %q", path, got)
		}
		if got := record.Get("response_body").Str; got != "a\nb" {
			t.Errorf("%s: the response is %q", path, got)
		}
	}
	_, answer := s.do("POST", "/v1/request/query", "root", `{"filter":"all"}`)
	if got := answer.Get("data.0.request_body").Raw; got != body {
		t.Errorf("a list has the body %q, want it as it was", got)
	}
}
