package llmcommand

import (
	"bytes"
	"encoding/csv"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// exported are the ids of an export's lines.
func exported(t *testing.T, lines string) []string {
	t.Helper()
	var ids []string
	for line := range strings.Lines(lines) {
		if !gjson.Valid(line) {
			t.Fatalf("no JSON: %q", line)
		}
		ids = append(ids, gjson.Get(line, "request_id").String())
	}
	return ids
}

// checkExport checks that an export has each of some records once, and nothing
// twice.
func checkExport(t *testing.T, lines string, want []*storage.Record) {
	t.Helper()
	times := make(map[string]int)
	for _, id := range exported(t, lines) {
		if times[id]++; times[id] == 2 {
			t.Errorf("duplicate id %s", id)
		}
	}
	missing := 0
	for _, r := range want {
		if times[r.ID.String()] == 0 {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d records are missing", missing, len(want))
	}
}

// crowd are records of which very many share a millisecond.
func crowd() []*storage.Record {
	var records []*storage.Record
	for n, at := range []storage.Timestamp{1000, 2000, 3000} {
		for i := range []int{1, 3*pageSize + 50, 2 * pageSize}[n] {
			records = append(records, &storage.Record{ID: id(len(records)), CreatedAt: at + storage.Timestamp(i/(3*pageSize))})
		}
	}
	for i := range 2 * pageSize {
		records = append(records, &storage.Record{ID: id(len(records)), CreatedAt: storage.Timestamp(4000 + i)})
	}
	return records
}

func TestExportWhileTrafficGoesOn(t *testing.T) {
	a := &api{}
	a.add(crowd()...)
	existing := slices.Clone(a.records)
	arriving := len(existing)
	a.before = func(*storage.RequestQuery) int {
		if a.queries > 20 {
			return 0
		}
		for _, at := range []storage.Timestamp{0, 1000, 2000, 3000, 4100, storage.Timestamp(5000 + a.queries)} {
			a.add(&storage.Record{ID: id(arriving), CreatedAt: at})
			arriving++
		}
		return 0
	}
	var out bytes.Buffer
	stderr, err := run(t.Context(), exportCommand, &out, "--address", a.serve(t))
	if err != nil || stderr != "" {
		t.Fatalf("%v, stderr %q", err, stderr)
	}
	checkExport(t, out.String(), existing)
	last := ""
	for line := range strings.Lines(out.String()) {
		if at := gjson.Get(line, "request_created_at").String(); at < last {
			t.Fatalf("%s comes after %s", at, last)
		} else {
			last = at
		}
	}
}

func TestExportOfPagesThatFail(t *testing.T) {
	for name, spoil := range map[string]func(*api){
		"break off":     func(a *api) { a.breakAfter = 7 },
		"take too long": func(a *api) { a.before = tooLongFor(30) },
	} {
		t.Run(name, func(t *testing.T) {
			a := &api{}
			a.add(crowd()...)
			spoil(a)
			var out bytes.Buffer
			if _, err := run(t.Context(), exportCommand, &out, "--address", a.serve(t)); err != nil {
				t.Fatal(err)
			}
			checkExport(t, out.String(), a.records)
		})
	}
}

// tooLongFor answers 504 to pages of more than limit records.
func tooLongFor(limit int) func(*storage.RequestQuery) int {
	return func(q *storage.RequestQuery) int {
		if q.Limit > limit {
			return http.StatusGatewayTimeout
		}
		return 0
	}
}

func TestExportThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		before  func(a *api) func(*storage.RequestQuery) int
		records int
		want    string
	}{
		"at once": {func(*api) func(*storage.RequestQuery) int { return tooLongFor(0) }, 0, "took longer than 10s"},
		"later": {func(a *api) func(*storage.RequestQuery) int {
			return func(*storage.RequestQuery) int {
				if a.queries == 2 {
					return http.StatusInternalServerError
				}
				return 0
			}
		}, pageSize, "it has 100 records"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &api{}
			a.add(crowd()...)
			a.before = tc.before(a)
			var out bytes.Buffer
			_, err := run(t.Context(), exportCommand, &out, "--address", a.serve(t))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want it to say %q", err, tc.want)
			}
			if got := len(exported(t, out.String())); got != tc.records {
				t.Errorf("%d records, want the %d that came before", got, tc.records)
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestExportToFullDisk(t *testing.T) {
	a := &api{}
	a.add(crowd()...)
	_, err := run(t.Context(), exportCommand, full{}, "--address", a.serve(t))
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("error %v, want the disk's", err)
	}
}

func TestExportLinesAndCSV(t *testing.T) {
	a := &api{body: "{\n  \"a\": [1,\n 2.0]\n}"}
	a.add(&storage.Record{
		ID: id(1), CreatedAt: 1_795_219_200_000, Model: "gpt-4o", UserID: `Ada "A", L`, Cost: plugins.KnownCost(27_500),
		Status: plugins.Known(200), Properties: map[string]string{"Env.a": "prod"},
	})
	address := a.serve(t)
	var lines bytes.Buffer
	if _, err := run(t.Context(), exportCommand, &lines, "--address", address); err != nil {
		t.Fatal(err)
	}
	if got := gjson.Get(lines.String(), "request_body").Raw; strings.Count(lines.String(), "\n") != 1 || got != `{"a":[1,2.0]}` {
		t.Errorf("not one line with its body: %q", lines.String())
	}

	var table bytes.Buffer
	if _, err := run(t.Context(), exportCommand, &table, "--address", address, "--format", "csv", "--columns", "time,user,cost,in,property.Env.a,score.x"); err != nil {
		t.Fatal(err)
	}
	want := "time,user,cost,in,property.Env.a,score.x\n" + `2026-11-21T00:00:00.000Z,"Ada ""A"", L",0.0000275,,prod,` + "\n"
	if got := table.String(); got != want {
		t.Errorf("CSV\n%s, want\n%s", got, want)
	}

	table.Reset()
	if _, err := run(t.Context(), exportCommand, &table, "--address", address, "--format", "csv"); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[0]) != len(allColumns) {
		t.Errorf("CSV of all columns: %v, %q", err, rows)
	}

	for value, want := range map[string]string{`"=cmd|' /C calc'!A0"`: `'=cmd|' /C calc'!A0`, `"@SUM(A1)"`: "'@SUM(A1)", `"-1.5"`: "-1.5", `-2`: "-2"} {
		if got := csvText(gjson.Parse(value)); got != want {
			t.Errorf("%s is %s in CSV, want %s", value, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	a := &api{}
	address := a.serve(t)
	other := func(status int, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			w.Write([]byte(body))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	for want, args := range map[string][]string{
		`unknown field "mdoel"`:        {"mdoel=x"},
		"expected http:// or https://": {"--address", "localhost:8080"},
		"expected one of jsonl, json, csv, focus, parquet, focus-parquet, not": {"--format", "xml"},
		"--columns goes with tables and CSV":                                   {"--columns", "time"},
		`unknown column "prize"`:                                               {"--columns", "prize", "--format", "csv"},
		"key-file: open /no/such/file":                                         {"--key-file", "/no/such/file"},
		"answered 200 OK, and not as":                                          {"--address", other(200, "")},
		"answered 200 OK, and not":                                             {"--address", other(200, `{"data":null}`)},
		"answered 200":                                                         {"--address", other(200, `{"models":[]}`)},
		"answered 404 Not Found, and not":                                      {"--address", other(404, "<html>")},
		"no answer from http://127.0.0.1:1: dial":                              {"--address", "http://127.0.0.1:1"},
		"the answer broke off":                                                 {"--address", other(200, `{"data":[`)},
		"the answer broke":                                                     {"--address", other(200, `{"data":[],"error":`)},
		"unknown flag: --key":                                                  {"--key", "secret"},
	} {
		if args[0] != "--address" {
			args = append(args, "--address", address)
		}
		var out bytes.Buffer
		_, err := run(t.Context(), exportCommand, &out, args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", args, err, want)
		}
	}
	t.Setenv(keyEnv, "wrong")
	if _, err := run(t.Context(), exportCommand, new(bytes.Buffer), "--address", address); err == nil || !strings.Contains(err.Error(), "give it by --key-file or $WEIR_API_KEY") {
		t.Errorf("a wrong key: %v", err)
	}
}

// The server refuses a field that records do not have.
func TestFieldsOfExports(t *testing.T) {
	for _, name := range slices.Concat(focusFields, callFields) {
		if !slices.ContainsFunc(storage.Schema, func(c *storage.Column) bool { return c.Shown() == name }) {
			t.Errorf("records have no field %s", name)
		}
	}
}

// A server of an older version, which exports all fields or none, is read by pages.
func TestExportFromAnOlderServer(t *testing.T) {
	a := &api{older: true}
	for i := range 3 {
		a.add(&storage.Record{ID: id(i), CreatedAt: storage.Timestamp(1000 + i), Model: "m" + strconv.Itoa(i)})
	}
	var table bytes.Buffer
	_, err := run(t.Context(), exportCommand, &table, "--address", a.serve(t), "--format", "csv", "--columns", "model")
	if err != nil || table.String() != "model\nm0\nm1\nm2\n" {
		t.Errorf("%q, %v", &table, err)
	}
}

// An export of fields goes on from where an answer broke off, and has each record once.
func TestExportOfFieldsThatBreaksOff(t *testing.T) {
	a := &api{breakAfter: 7}
	for i := range 50 {
		a.add(&storage.Record{ID: id(i), CreatedAt: storage.Timestamp(1000 + i/3), Model: id(i).String()})
	}
	var table bytes.Buffer
	if _, err := run(t.Context(), exportCommand, &table, "--address", a.serve(t), "--format", "csv", "--columns", "model"); err != nil {
		t.Fatal(err)
	}
	lines := slices.Sorted(strings.Lines(table.String()))
	if len(lines) != 51 || len(slices.Compact(lines)) != 51 || a.queries < 7 {
		t.Errorf("%d lines of %d answers: %q", len(lines), a.queries, lines)
	}
}
