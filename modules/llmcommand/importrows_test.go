package llmcommand

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/plugins"
)

// productRows describes the rows of a product for the test below.
type productRows struct {
	product, id, begin string
	fixed              map[string]any // fields that make a row a call
	counts             string         // field with the completion tokens
	mixed              []string       // fields with values of any type
}

var exports = []productRows{
	{"helicone", "request_id", "request_created_at", map[string]any{"response_status": 200}, "completion_tokens", []string{
		"response_created_at", "delay_ms", "time_to_first_token", "provider", "target_url", "request_path", "model", "response_model", "prompt_tokens",
		"cost", "request_user_id", "properties", "scores", "feedback_rating", "cache_enabled", "request_body", "response_body", "another",
	}},
	{"litellm", "request_id", "startTime", map[string]any{"call_type": "acompletion"}, "completion_tokens", []string{
		"endTime", "completionStartTime", "spend", "prompt_tokens", "model", "custom_llm_provider", "metadata", "cache_hit", "request_tags", "user", "end_user",
		"session_id", "status", "messages", "response", "proxy_server_request", "another",
	}},
	{"langfuse", "id", "startTime", map[string]any{"type": "GENERATION", "traceId": "one"}, "completionTokens", []string{
		"endTime", "completionStartTime", "timeToFirstToken", "model", "modelParameters", "input", "output", "metadata", "costDetails", "totalCost", "level",
		"environment", "tags", "promptName", "promptVersion", "userId", "sessionId", "promptTokens", "another",
	}},
	{"portkey", "id", "created_at", map[string]any{"trace_id": "one"}, "res_units", []string{
		"response_time", "ai_org", "ai_model", "req_units", "cost", "cost_currency", "cache_status", "response_status_code", "is_success", "request_url",
		"request", "response", "metadata", "config", "prompt_slug", "another",
	}},
	{"tensorzero", "id", "created_at", map[string]any{"inference_id": "one", "model_name": "openai::gpt-4o-mini", "response_time_ms": 700}, "output_tokens", []string{
		"response_time_ms", "ttft_ms", "input_tokens", "model_provider_name", "cached", "cost", "raw_request", "raw_response", "another",
	}},
}

var exportForms = []string{"lines", "csv", "pretty", "array"}

// anyValue is a value of any type.
var anyValue = rapid.SampledFrom([]any{
	nil, "", "x", "12", "-3", "1.5", "NaN", "2026-09-01T10:00:00Z", "{", `{"a":"b"}`, 0, 7, -2, 0.25, 1e300, true, false,
	[]any{}, []any{1, "x", nil}, map[string]any{}, map[string]any{"a": "x", "b": 3, "c": nil, "d": map[string]any{"e": []any{}}},
})

// tokensOf is the count that a value stands for.
func tokensOf(value any) plugins.Count {
	n, err := strconv.ParseFloat(fmt.Sprint(value), 64)
	if _, isTruth := value.(bool); err != nil || isTruth || !(n >= 0 && n < 1<<53 && n == math.Trunc(n)) {
		return plugins.Count{}
	}
	return plugins.Known(int64(n))
}

// An import accounts for each row exactly once, whatever the types of the values are: a
// row that cannot be read takes no other with it, a value of the wrong type is unknown and
// never 0, and importing again changes nothing.
func TestImportAccounts(t *testing.T) {
	importSite(t, `"retention": 2592000000000000, `)
	recorded := map[string]plugins.Count{} // completion tokens by trace and span
	files := 0
	rapid.Check(t, func(t *rapid.T) {
		files++
		x := rapid.SampledFrom(exports).Draw(t, "product")
		form := rapid.SampledFrom(exportForms).Draw(t, "form")
		var rows []map[string]any // nil for one that is broken
		want := account{}
		completion := map[string]plugins.Count{} // by id
		for n := range rapid.IntRange(1, 12).Draw(t, "rows") {
			row := map[string]any{x.id: fmt.Sprintf("file-%d-%d", files, n), x.begin: time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}
			for name, value := range x.fixed {
				row[name] = value
			}
			for _, name := range append([]string{x.counts}, x.mixed...) {
				row[name] = anyValue.Draw(t, name)
			}
			switch kind := rapid.SampledFrom([]string{"call", "call", "call", "old", "no id", "no time", "again", "broken"}).Draw(t, "kind"); {
			case kind == "broken" && n > 0 && n < 11: // the first line of a file names the form
				row = nil
				want.refused++
			case kind == "old":
				row[x.begin] = "2026-01-02T03:04:05Z"
				want.expired++
			case kind == "no id":
				row[x.id] = nil
				want.refused++
			case kind == "no time":
				row[x.begin] = "yesterday"
				want.refused++
			case kind == "again" && want.recorded > 0:
				row = rows[slices.IndexFunc(rows, func(r map[string]any) bool {
					_, ok := completion[fmt.Sprint(r[x.id])]
					return ok
				})]
				want.known++
			default:
				completion[row[x.id].(string)] = tokensOf(row[x.counts])
				want.recorded++
			}
			rows = append(rows, row)
		}
		want.rows = int64(len(rows))
		file := filepath.Join(os.TempDir(), fmt.Sprintf("weir-import-%d-%d", os.Getpid(), files))
		if err := os.WriteFile(file, exportText(x, form, rows), 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(file)
		for _, flag := range []string{"--dry-run", "--dry-run=false"} {
			if got := importAccount(t.Context(), t, flag, x.product, file); got != want {
				t.Fatalf("%s as %s with %s: the import says %+v, want %+v", x.product, form, flag, got, want)
			}
		}
		want.known, want.recorded = want.known+want.recorded, 0
		if got := importAccount(t.Context(), t, x.product, file); got != want {
			t.Fatalf("%s as %s again: the import says %+v, want %+v", x.product, form, got, want)
		}
		want.replaced, want.known = int64(len(completion)), 0
		if got := importAccount(t.Context(), t, "--replace", x.product, file); got.replaced < want.replaced || got.recorded+got.known > 0 {
			t.Fatalf("%s as %s with --replace: the import says %+v, want at least %+v", x.product, form, got, want)
		}
		for id, tokens := range completion {
			trace := id
			if x.product != "helicone" && x.product != "litellm" {
				trace = "one"
			}
			recorded[hex.EncodeToString(slices.Concat(idBytes(trace, 16), idBytes(id, 8)))] = tokens
		}
	})
	records := storedRecords(t)
	if len(records) != len(recorded) {
		t.Errorf("%d records of %d calls", len(records), len(recorded))
	}
	for _, record := range records {
		tokens := recorded[record.Get("trace_id").Str+record.Get("span_id").Str]
		if tokens.Valid && record.Get("completion_tokens").Raw != strconv.FormatInt(tokens.N, 10) || !tokens.Valid && record.Get("completion_tokens").Raw != "null" {
			t.Errorf("%s has not the completion tokens %+v", record.Raw, tokens)
		}
	}
}

// manyRows is how many rows of each product TestImportAccountsForManyRows imports, in several
// batches, and manyKeys how many TestImportKeysAccountsForManyRows does, of which a site lists
// several pages.
var manyRows, manyKeys = importRows("500"), importRows("300")

// importRows is the number of rows that IMPORT_ROWS says, in steps of 100.
func importRows(otherwise string) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("IMPORT_ROWS"), otherwise))
	if err != nil {
		panic(err)
	}
	return n
}

// checkRefused checks that a file names each row that is broken, with its reason, and no other.
func checkRefused(t *testing.T, file string, rows []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[int64]string{
		9: "it is no ", 19: "it is no ", 29: "it has no id", 39: "it has no id", 49: "it does not say when it began", 59: "it does not say when it began",
		69: "it has a time before 1970", 79: "it has a time before 1970", 89: "the site says: start_time_unix_nano: ", 99: "the site says: start_time_unix_nano: ",
	}
	named := make(map[int64]bool)
	for line := range strings.Lines(string(text)) {
		row := gjson.Parse(line)
		n := row.Get("row").Int() - 1
		if want := reasons[n%100]; want == "" || named[n] || !strings.HasPrefix(row.Get("reason").Str, want) || row.Get("text").Str == "" {
			t.Fatalf("among the refused is %s", line)
		}
		named[n] = true
		if id := rows[n]["id"]; id != nil && !strings.Contains(row.Get("text").Str, id.(string)) {
			t.Fatalf("it is the text of another row than %v: %s", id, line)
		}
	}
	if len(named) != manyRows/10 {
		t.Errorf("%d rows are among the refused", len(named))
	}
}

// account is what the report of an import says.
type account struct{ rows, recorded, replaced, known, expired, refused int64 }

func importAccount(ctx context.Context, t rapid.TB, args ...string) (a account) {
	var out bytes.Buffer
	_, err := run(ctx, importCommand, &out, args...)
	for line := range strings.Lines(strings.ReplaceAll(out.String(), ",", "")) {
		var n, recorded int64
		if _, err := fmt.Sscanf(line, "%d rows: %d new calls", &n, &recorded); err == nil {
			a.rows, a.recorded = n, recorded
			continue
		}
		if _, err := fmt.Sscanf(line, "%d ", &n); err != nil {
			continue
		}
		switch {
		case strings.Contains(line, "replaced"):
			a.replaced += n
		case strings.Contains(line, "already there"):
			a.known += n
		case strings.Contains(line, "older than"):
			a.expired += n
		case strings.Contains(line, "refused"):
			a.refused += n
		default:
			t.Fatalf("the import says %q", line)
		}
	}
	if (err != nil) != (a.refused > 0) || a.recorded+a.replaced+a.known+a.expired+a.refused != a.rows {
		t.Fatalf("%v, and the import says\n%s", err, &out)
	}
	return a
}

// exportText writes rows in one of the forms of an export. A row that is nil is broken.
func exportText(x productRows, form string, rows []map[string]any) []byte {
	var b bytes.Buffer
	if form == "csv" {
		return exportCSV(x, rows)
	}
	if form == "array" || form == "pretty" {
		b.WriteString("[\n")
	}
	for i, row := range rows {
		text := rowText(row)
		if form == "pretty" && row != nil {
			text, _ = json.MarshalIndent(row, "", "  ")
		}
		b.Write(text)
		if form != "lines" && i < len(rows)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	if form != "lines" {
		b.WriteString("]\n")
	}
	return b.Bytes()
}

func rowText(row map[string]any) []byte {
	if row == nil {
		return []byte(`{"id":"cut off`)
	}
	text, _ := json.Marshal(row)
	return text
}

func exportCSV(x productRows, rows []map[string]any) []byte {
	var b bytes.Buffer
	names := append([]string{x.id, x.begin, x.counts}, x.mixed...)
	for name := range x.fixed {
		names = append(names, name)
	}
	w := csv.NewWriter(&b)
	_ = w.Write(names)
	for _, row := range rows {
		var line []string
		for _, name := range names {
			switch value := row[name].(type) {
			case nil:
				line = append(line, "")
			case string:
				line = append(line, value)
			default:
				text, _ := json.Marshal(value)
				line = append(line, string(text))
			}
		}
		if row == nil {
			line = line[:2]
		}
		_ = w.Write(line)
	}
	w.Flush()
	return b.Bytes()
}

// Calls that are older than the retention are imported if the caller says so.
func TestImportKeepsOld(t *testing.T) {
	importSite(t, `"retention": 86400000000000, `)
	for flag, want := range map[string]string{"--keep-old=false": "0 new calls", "--keep-old": "3 new calls"} {
		var out bytes.Buffer
		if _, err := run(t.Context(), importCommand, &out, flag, "litellm", "testdata/litellm.csv"); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, and the import says\n%s", flag, err, &out)
		}
	}
}

// endless is a text of more than any row may have.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	if e.read > 3*maxRow {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = 'a'
	}
	e.read += len(p)
	return len(p), nil
}

// A file whose quote does not end is not read into memory.
func TestEndlessLineOfCSV(t *testing.T) {
	text := &endless{}
	for _, err := range rows(io.MultiReader(strings.NewReader("a,b\n1,\""), text)) {
		if err == nil || text.read > 2*maxRow {
			t.Fatalf("after %d bytes: %v", text.read, err)
		}
	}
	if text.read == 0 {
		t.Error("nothing was read")
	}
}

// Of a file that is compressed, or in UTF-16, no row is made.
func TestExportIsText(t *testing.T) {
	const row = `{"request_id":"a"}`
	var compressed, wide bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = io.WriteString(w, row)
	_ = w.Close()
	for _, c := range row {
		wide.Write([]byte{byte(c), 0})
	}
	for _, file := range []io.Reader{&compressed, &wide} {
		for row, err := range rows(file) {
			if err == nil || !strings.Contains(err.Error(), "no text in UTF-8") {
				t.Errorf("the row is %s, %v", row.Raw, err)
			}
		}
	}
}
