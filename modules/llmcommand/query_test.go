package llmcommand

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
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
	"github.com/weirhq/weir/storage"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func someRecords() []*storage.Record {
	return []*storage.Record{
		{
			ID: id(1), CreatedAt: 1_795_219_200_000, RespondedAt: 1_795_219_201_250, Model: "gpt-4o-mini", UserID: "Ada",
			Status: plugins.Known(200), Latency: plugins.KnownDuration(1250 * time.Millisecond), TimeToFirstToken: plugins.KnownDuration(80 * time.Millisecond),
			Usage: plugins.Usage{Input: plugins.Known(12_000), Output: plugins.Known(34)}, Cost: plugins.KnownCost(1_827_500),
		},
		{ID: id(2), CreatedAt: 1_795_219_260_000, Model: "\x1b[31mモデル\u202e\n", Status: plugins.Known(499), Properties: map[string]string{"Env": "prod"}},
	}
}

func TestQueryTable(t *testing.T) {
	a := &api{}
	a.add(someRecords()...)
	var out bytes.Buffer
	if _, err := run(t.Context(), queryCommand, &out, "--address", a.serve(t), "--utc"); err != nil {
		t.Fatal(err)
	}
	want := `
TIME                 MODEL         STATUS  LATENCY  TTFT      IN  OUT       COST  USER  ERROR
2026-11-21 00:01:00  �[31mモデル      499        -     -       -    -          -  -     -
2026-11-21 00:00:00  gpt-4o-mini      200    1.25s  80ms  12,000   34  $0.001828  Ada   -

2 requests, cost $0.001828 (1 unknown), tokens 12,034 (1 unknown)
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("table%s\nwant%s", got, want)
	}
}

func TestQueryFormats(t *testing.T) {
	a := &api{}
	address := a.serve(t)
	for _, n := range []int{0, 1, 2} {
		a.records = someRecords()[:n]
		var out bytes.Buffer
		if _, err := run(t.Context(), queryCommand, &out, "--address", address, "--format", "json"); err != nil {
			t.Fatal(err)
		}
		var records []struct {
			Model string `json:"model"`
		}
		if err := json.Unmarshal(out.Bytes(), &records); err != nil || len(records) != n {
			t.Errorf("%d records: %v in %s", n, err, &out)
		}
	}
	var out bytes.Buffer
	if _, err := run(t.Context(), queryCommand, &out, "--address", address, "--format", "csv", "--columns", "model,property.Env", "--sort", "response_model:asc,time:asc", "user=Ada"); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "model,property.Env\ngpt-4o-mini,\n"; got != want {
		t.Errorf("CSV %q, want %q", got, want)
	}
}

func TestQueryAsks(t *testing.T) {
	a := &api{}
	var asked storage.RequestQuery
	a.before = func(q *storage.RequestQuery) int {
		asked = *q
		return 0
	}
	address := a.serve(t)
	args := []string{"model=x", "cost>1", "--limit", "7", "--sort", "cost,user:asc,property.a:b:asc", "--address", address + "/"}
	if _, err := run(t.Context(), queryCommand, new(bytes.Buffer), args...); err != nil {
		t.Fatal(err)
	}
	filter, err := question.ParseFilter(args[:2], noon)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := storage.AppendJSON(nil, asked.Filter), storage.AppendJSON(nil, filter); !bytes.Equal(got, want) {
		t.Errorf("filter %s, want %s", got, want)
	}
	if want := []storage.Sort{{Key: storage.SortCost, Desc: true}, {Key: storage.SortUserID}, {Key: storage.SortProperties, Name: "a:b"}}; !slices.Equal(asked.Sort, want) {
		t.Errorf("sort %v, want %v", asked.Sort, want)
	}
	if asked.Limit != 7 {
		t.Errorf("limit %d, want 7", asked.Limit)
	}
}

// A query of content searches: it takes as long as it needs, and answers in parts.
func TestQueryOfContent(t *testing.T) {
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		line := func(ids ...string) {
			text, _ := json.Marshal(map[string]any{"data": []any{}, "error": nil, "next": "x"})
			for _, id := range ids {
				text = fmt.Appendf(nil, `{"data":[{"request_id":%q}],"error":null,"next":"x"}`, id)
			}
			w.Write(append(text, '\n'))
		}
		line("one")
		if r.URL.Path == "/v1/request/search" {
			line()
			line("two")
		}
	}))
	defer server.Close()
	for _, test := range []struct {
		args []string
		path string
		rows int
	}{
		{[]string{"body~needle"}, "/v1/request/search", 2},
		{[]string{"model=m"}, "/v1/request/query-clickhouse", 1},
		{[]string{"body~needle", "--sort", "cost"}, "/v1/request/query-clickhouse", 1},
	} {
		paths = nil
		var out strings.Builder
		_, err := run(t.Context(), queryCommand, &out, append(test.args, "--format", "jsonl", "--address", server.URL)...)
		if rows := strings.Count(out.String(), "\n"); err != nil || rows != test.rows || !slices.Equal(paths, []string{test.path}) {
			t.Errorf("%v: %d rows of %v, %v", test.args, rows, paths, err)
		}
	}
	if err := eachRecord(strings.NewReader(`{"data":[],"error":null}`+"\n"+`{"data":[{}`), func(gjson.Result) bool { return true }); !errors.Is(err, errBroken) {
		t.Errorf("a line that breaks off: %v", err)
	}
}

func TestQueryErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"--limit: expected 0 to 1000, not 1001":   {"--limit", "1001"},
		"not -1":                                  {"--limit", "-1"},
		`--sort: unknown key "price"`:             {"--sort", "price"},
		`expected asc or desc behind the colon`:   {"--sort", "cost:up"},
		`expected one of table, jsonl, json, csv`: {"--format", "xml"},
		`filter term "cost>x": "x" is no number`:  {"cost>x"},
	} {
		_, err := run(t.Context(), queryCommand, new(bytes.Buffer), args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", args, err, want)
		}
	}
}

// A certificate of a private CA is trusted when --ca or WEIR_CA names the CA.
func TestPrivateCA(t *testing.T) {
	a := &api{}
	a.add(&storage.Record{ID: id(1), CreatedAt: 1})
	t.Setenv(keyEnv, "secret")
	server := httptest.NewUnstartedServer(a)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(args ...string) error {
		_, err := run(t.Context(), queryCommand, new(bytes.Buffer), append(args, "--address", server.URL)...)
		return err
	}
	if err := ask(); err == nil || !strings.Contains(err.Error(), "--ca or $WEIR_CA names") {
		t.Errorf("without the CA: %v", err)
	}
	if err := ask("--ca", ca); err != nil {
		t.Error(err)
	}
	t.Setenv(caEnv, ca)
	if err := ask(); err != nil {
		t.Error(err)
	}
	for _, file := range []string{"/no/such/file", "query_test.go"} {
		if err := ask("--ca", file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestKeyFile(t *testing.T) {
	a := &api{}
	address := a.serve(t)
	t.Setenv(keyEnv, "another")
	t.Setenv(addressEnv, address)
	file := filepath.Join(t.TempDir(), "key")
	for content, ok := range map[string]bool{"secret\n": true, "secret\r\nmore\n": true, "secret": true, "wrong\n": false, "\nsecret": false, "": false} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := run(t.Context(), queryCommand, new(bytes.Buffer), "--key-file", file); (err == nil) != ok {
			t.Errorf("a key file of %q: %v", content, err)
		}
	}
}

// TestGridFits lays texts of any width out on terminals of any width.
func TestGridFits(t *testing.T) {
	rows := [][]string{{"gpt-4o-mini-2024-07-18", "1,234", "日本語のユーザー名です"}, {"x", "-", ""}, {strings.Repeat("é", 50), "5", "y"}}
	for limit := 1; limit < 120; limit++ {
		var out bytes.Buffer
		g := &grid{w: &out, limit: limit, headings: []string{"MODEL", "TOKENS", "USER"}, right: []bool{false, true, false}, yields: []bool{true, false, true}}
		for _, row := range rows {
			g.add(row)
		}
		if err := g.flush(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := columns(strings.TrimSuffix(line, "\n")); n > limit {
				t.Errorf("%q takes %d columns of %d", line, n, limit)
			}
		}
		if limit > 30 && !strings.Contains(out.String(), "  1,234  ") {
			t.Errorf("on %d columns a number was cut:\n%s", limit, &out)
		}
		if limit > 100 && strings.Contains(out.String(), "…") {
			t.Errorf("on %d columns texts were cut that fit:\n%s", limit, &out)
		}
	}
}

func TestGridKeepsItsColumns(t *testing.T) {
	var out bytes.Buffer
	g := &grid{w: &out, headings: []string{"A", "B"}, right: []bool{false, true}}
	for _, row := range [][]string{{"long text", "1"}, {"short", "22"}} {
		g.add(row)
		if err := g.flush(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := out.String(), "A          B\nlong text  1\nshort      22\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Amounts stand below each other at the decimal point, and those of later rows below the earlier ones.
func TestGridAlignsAmounts(t *testing.T) {
	var out bytes.Buffer
	g := &grid{w: &out, headings: []string{"COST", "USER"}, right: []bool{true, false}, points: []bool{true, false}}
	for _, rows := range [][][]string{{{"$31.5684897", "ada"}, {"-", "bo"}, {"$2.313258825", "cy"}}, {{"100", "di"}}} {
		for _, row := range rows {
			g.add(row)
		}
		if err := g.flush(); err != nil {
			t.Fatal(err)
		}
	}
	want := "         COST  USER\n$31.5684897    ada\n            -  bo\n $2.313258825  cy\n100            di\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestNumbers(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{formatCount(0), "0"},
		{formatCount(999), "999"},
		{formatCount(1000), "1,000"},
		{formatCount(-123456), "-123,456"},
		{formatCount(1234567), "1,234,567"},
		{formatAmount(1312.047, "usd"), "$1,312.05"},
		{formatAmount(-1.76, "usd"), "-$1.76"},
		{formatAmount(0.0195, "usd"), "$0.02"},
		{formatAmount(0.000021, "usd"), "$0.000021"},
		{formatAmount(0, "usd"), "$0.00"},
		{formatAmount(1234, "tokens"), "1,234"},
		{formatCost(29_565_137_100), "$29.57"},
		{formatCost(-812_343_975), "-$0.812344"},
		{formatCost(7), "$0.000000007"},
		{formatCost(0), "$0.00"},
		{formatBytes(0), "0 B"},
		{formatBytes(999), "999 B"},
		{formatBytes(1000), "1.0 kB"},
		{formatBytes(999_999), "1.0 MB"},
		{formatBytes(5_250_000_000), "5.2 GB"},
		{formatBytes(1e16), "10000.0 TB"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s, want %s", tc.got, tc.want)
		}
	}
}

// TestColumnsAreFields checks that what can be filtered can be shown, and that
// aliases stand for something.
func TestColumnsAreFields(t *testing.T) {
	for _, f := range storage.Fields() {
		if f.Group != storage.RequestResponse || f.Map {
			continue
		}
		switch f.Name {
		case "scores_column", "cached", "property_key": // they have no field in a record
			continue
		}
		if _, err := parseColumn(f.Name); err != nil {
			t.Error(err)
		}
	}
	for alias := range question.Aliases {
		if _, err := parseColumn(alias); err != nil {
			t.Error(err)
		}
		if f, _ := question.FilterField(alias); f == nil {
			t.Errorf("no filter takes %s", alias)
		}
	}
}

// Tables and files of metrics have no bodies unless they are among the columns, and do not ask for them: a read of
// content is an event in the audit log.
func TestTablesAskForNoContent(t *testing.T) {
	address, asked := answering(t, "/v1/request/query-clickhouse", "[]")
	for args, want := range map[string]string{
		"": "false", "--format csv": "false", "--columns time,response_body": "", "--format jsonl": "",
	} {
		var out bytes.Buffer
		if _, err := run(t.Context(), queryCommand, &out, append(strings.Fields("all --address "+address), strings.Fields(args)...)...); err != nil {
			t.Fatal(err)
		}
		if got := asked.Get("includeContent").Raw; got != want {
			t.Errorf("query %s asks with includeContent %q, want %q", args, got, want)
		}
	}
	for format, hasContent := range map[string]bool{formatCSV: false, formatFOCUS: false, formatParquet: false, formatFOCUSParquet: false, formatJSONL: true} {
		args := []string{"--address", address, "--format", format}
		if strings.Contains(format, formatParquet) {
			args = append(args, "--folder", t.TempDir())
		}
		if _, err := run(t.Context(), exportCommand, io.Discard, args...); err != nil {
			t.Fatal(err)
		}
		columns := asked.Get("columns")
		if asks := !columns.IsArray() || strings.Contains(columns.Raw, "_body"); asks != hasContent {
			t.Errorf("export as %s asks for content: %t, want %t: %s", format, asks, hasContent, asked)
		}
	}
}

// A wrong value of a flag or an argument is a misuse, whose exit code is 2.
func TestWrongValuesAreMisuse(t *testing.T) {
	for _, args := range [][]string{{"cost>>"}, {"--format", "xml"}, {"--columns", "none"}, {"--limit", "-1"}} {
		_, err := run(t.Context(), queryCommand, io.Discard, args...)
		if _, ok := errors.AsType[misuse](err); !ok {
			t.Errorf("%q: %v", args, err)
		}
	}
}
