package reconcile

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// compareFile compares a bill of files with the calls of a day.
func compareFile(t *testing.T, bill *Bill, models map[string]string, calls ...Call) *Report {
	t.Helper()
	records := NewRecords(catalog.Default(), bill, false)
	for _, c := range calls {
		records.Add(&c)
	}
	report, err := Compare(t.Context(), bill, records, Options{Window: month, Models: models})
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, report)
	return report
}

func cloudCall(provider, model, tier string, u plugins.Usage) Call {
	at := time.Date(2026, 10, 5, 9, 30, 0, 0, time.UTC)
	c := Call{Start: at, End: at, Provider: provider, Model: model, Name: model, Tier: tier, Status: 200, Complete: true, Usage: u}
	c.Cost = plugins.KnownCost(1_000_000)
	return c
}

const cur = `line_item_usage_start_date,line_item_line_item_type,line_item_product_code,line_item_usage_type,line_item_usage_amount,line_item_unblended_cost,line_item_currency_code,line_item_line_item_description,pricing_unit,product
2026-10-05T09:00:00.000Z,Usage,AmazonBedrock,USE1-NovaLite-input-tokens,1.5,0.0004,USD,,1K tokens,"{}"
2026-10-05T09:00:00.000Z,Usage,AmazonBedrock,USE1-NovaLite-output-tokens,0.25,0.0005,USD,,1K tokens,"{}"
2026-10-05T10:00:00.000Z,Usage,AmazonBedrock,USE1-NovaLite-cache-read-input-token-count-cross-region-global,0.5,0.0001,USD,,1K tokens,"{}"
2026-10-05T10:00:00.000Z,Usage,AmazonBedrock,USE1-NovaLite-output-tokens-batch,0.1,0.001,USD,,1K tokens,"{}"
2026-10-05T10:00:00.000Z,Usage,8u8s,USW2-MP:USW2_InputTokenCount-Units,0.002,0.0006,USD,AWS Marketplace software usage|us-west-2|Million Input Tokens,Units,"{""product_name"":""Claude Sonnet 4.6 (Amazon Bedrock Edition)""}"
2026-10-05T10:00:00.000Z,Usage,8u8s,USW2-MP:USW2_output_tokens_standard-Units,0.0001,0.0004,USD,AWS Marketplace software usage|us-west-2|Million Output Tokens,Units,"{""product_name"":""Claude Sonnet 4.6 (Amazon Bedrock Edition)""}"
2026-10-05T10:00:00.000Z,EdpDiscount,AmazonBedrock,USE1-NovaLite-input-tokens,0,-0.5,USD,Enterprise discount,,"{}"
2026-10-05T10:00:00.000Z,Usage,AmazonBedrock,USE1-ProvisionedThroughput-ModelUnits,1,2,USD,,Hrs,"{}"
2026-10-05T10:00:00.000Z,Usage,AmazonEC2,BoxUsage:m5.large,1,9,USD,,Hrs,"{}"
`

const curJSON = `{"line_item_usage_start_date":"2026-10-05T09:00:00.000Z","line_item_line_item_type":"Usage","line_item_product_code":"AmazonBedrock","line_item_usage_type":"USE1-NovaLite-input-tokens","line_item_usage_amount":"1.5","line_item_unblended_cost":"0.0004","line_item_currency_code":"USD","pricing_unit":"1K tokens"}`

func TestAWS(t *testing.T) {
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	fmt.Fprint(z, cur)
	z.Close()
	bill := NewFileBill("bedrock")
	if err := bill.AddAWS(&compressed); err != nil {
		t.Fatal(err)
	}
	report := compareFile(t, bill, nil,
		cloudCall("bedrock", "amazon.nova-lite-v1:0", "", plugins.Usage{Input: plugins.Known(2000), CacheRead: plugins.Known(500), Output: plugins.Known(250)}),
		cloudCall("bedrock", "us.amazon.nova-lite-v1:0", "batch", plugins.Usage{Input: plugins.Known(0), Output: plugins.Known(100)}),
		cloudCall("bedrock", "anthropic.claude-sonnet-4-6-20260501-v1:0", "", plugins.Usage{Input: plugins.Known(2000), Output: plugins.Known(100)}),
	)
	if !report.Agrees || report.Billed.Tokens.Total != 4450 || report.Billed.Cost.N != 3_000_000 || len(report.Incomparable) != 2 {
		t.Errorf("%+v", report)
	}
}

const cloudBilling = `{"sku":{"description":"Gemini 2.5 Flash GA Text Input - Predictions"},"usage_start_time":"2026-10-05 09:00:00 UTC","cost":0.0003,"currency":"USD","cost_type":"regular","usage":{"amount":1000},"credits":[{"name":"Free trial","amount":-0.0001}]}
{"sku":{"description":"Gemini 2.5 Flash GA Thinking Text Output - Predictions"},"usage_start_time":"2026-10-05T09:00:00Z","cost":0.0004,"currency":"USD","cost_type":"regular","usage":{"amount":40},"credits":[]}
{"sku":{"description":"Gemini 2.5 Flash GA Text Output (Thinking On) - Predictions"},"usage_start_time":"2026-10-05T09:00:00Z","cost":0.0002,"currency":"USD","cost_type":"regular","usage":{"amount":60},"credits":[]}
{"sku":{"description":"Gemini 2.5 Flash GA Input Text Caching"},"usage_start_time":"2026-10-05T09:00:00Z","cost":0.0001,"currency":"USD","cost_type":"regular","usage":{"amount":24},"credits":[]}
{"sku":{"description":"Gemini 2.5 Flash GA Cache Storage"},"usage_start_time":"2026-10-05T09:00:00Z","cost":1,"currency":"USD","cost_type":"regular","usage":{"amount":24},"credits":[]}
{"sku":{"description":"N1 Predefined Instance Core"},"usage_start_time":"2026-10-05T09:00:00Z","cost":9,"currency":"USD","cost_type":"regular","usage":{"amount":24},"credits":[]}
`

const cloudTable = `SKU description,Usage start time,Cost,Currency,Usage amount
Gemini 2.5 Flash GA Text Input - Predictions,2026-10-05,0.0003,USD,1000
Gemini 2.5 Flash GA Text Output - Predictions,2026-10-05,0.0006,USD,100
"Gemini 2.5 Flash GA Input Text Caching",2026-10-05,0.0001,USD,24
`

func TestGoogle(t *testing.T) {
	for name, export := range map[string]string{
		"JSON lines": cloudBilling, "JSON array": "[" + strings.ReplaceAll(strings.TrimSpace(cloudBilling), "\n", ",") + "]", "CSV": cloudTable,
	} {
		bill := NewFileBill("vertex", "gemini")
		if err := bill.AddGoogle(strings.NewReader(export)); err != nil {
			t.Fatal(name, err)
		}
		report := compareFile(t, bill, nil,
			cloudCall("vertex", "gemini-2.5-flash", "", plugins.Usage{Input: plugins.Known(1024), CacheRead: plugins.Known(24), Output: plugins.Known(100)}))
		if !report.Agrees || report.Billed.Tokens.Total != 1124 || (len(report.Incomparable) == 2) != (name != "CSV") {
			t.Errorf("%s: %+v", name, report)
		}
	}
}

func TestNamesOfModels(t *testing.T) {
	for bill, record := range map[string]string{
		"Claude4.6Sonnet":            "anthropic.claude-sonnet-4-6-20260501-v1:0",
		"Claude Opus 4.5":            "eu.anthropic.claude-opus-4-5-20251101-v1:0",
		"NovaLite":                   "amazon.nova-lite-v1:0",
		"Nova2.0Lite":                "amazon.nova-2-lite-v1:0",
		"Llama4-Maverick-17B":        "meta.llama4-maverick-17b-instruct-v1:0",
		"openai.gpt-oss-120b-mantle": "openai.gpt-oss-120b-1:0",
		"Gemini 2.5 Flash":           "gemini-2.5-flash",
		"Claude Sonnet 4":            "claude-sonnet-4@20250514",
	} {
		if a, b := wordsOf(bill), wordsOf(record); a != b {
			t.Errorf("%s is %q, %s is %q", bill, a, record, b)
		}
	}
	if wordsOf("Claude Sonnet 4") == wordsOf("claude-sonnet-4-5") {
		t.Error("two models are one")
	}
}

// TestANameThatRecordsLack is a model that no call through Weir used, unless a flag says its name.
func TestANameThatRecordsLack(t *testing.T) {
	call := cloudCall("bedrock", "amazon.nova-lite-v1:0", "", plugins.Usage{Input: plugins.Known(1500), Output: plugins.Known(0)})
	call.Cost = plugins.KnownCost(400_000)
	line := strings.Join(strings.SplitN(cur, "\n", 3)[:2], "\n")
	for models, want := range map[string][]Reason{"": {Outside, Unbilled, Price}, "TinyNova": nil} { // the cost of the record is made up
		bill := NewFileBill("bedrock")
		if err := bill.AddAWS(strings.NewReader(strings.Replace(line, "NovaLite", "TinyNova", 1))); err != nil {
			t.Fatal(err)
		}
		named := map[string]string{models: call.Model}
		var found []Reason
		for _, d := range compareFile(t, bill, named, call).Differences {
			found = append(found, d.Reason)
			if d.Reason == Outside && (d.Cost != call.Cost || !strings.Contains(d.Explanation, "--model")) { // of which no price is known
				t.Errorf("%+v", d)
			}
		}
		if !slices.Equal(found, want) {
			t.Errorf("%q: found %q, expected %q", models, found, want)
		}
	}
}

func TestBrokenExports(t *testing.T) {
	for text, want := range map[string]string{
		"": "the file is empty", "a,b\n1,2\n": "no line_item_usage_type", `{"a":`: "row 1",
		"[" + curJSON: "has no end", curJSON + curJSON[:9]: "row 2", "[" + curJSON + "]]": "after the last row",
		strings.Replace(cur, "0.0004", "four", 1):        `line 2: line_item_unblended_cost: "four"`,
		strings.Replace(cur, "USD", "EUR", 1):            "the bill is in EUR",
		strings.Replace(cur, "2026-10-05T09", "then", 1): "is not a time",
	} {
		if err := NewFileBill("bedrock").AddAWS(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, expected %q", text, err, want)
		}
	}
	for _, list := range [][][]string{awsColumns, googleColumns} {
		for i, names := range list {
			heading := "other"
			for _, present := range slices.Concat(list[:i], list[i+1:]) {
				heading += "," + present[0]
			}
			for text, want := range map[string]bool{heading: true, heading + "," + names[0]: false, "{}": true, "[]": false} {
				err := readRows(strings.NewReader(text), list, func(row) error { return nil })
				if missing := err != nil && strings.Contains(err.Error(), "has no "); missing != want {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	}
	if err := NewFileBill("vertex").AddGoogle(strings.NewReader("a\n1\n")); err == nil || !strings.Contains(err.Error(), "no sku.description") {
		t.Error(err)
	}
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]Amount{
		"0.06": {60_000_000, 5_000_000}, "12": {12_000_000_000, 5_000_000}, "0.0000123456789": {12346, 1}, "1.5e-05": {15_000, 1}, "-3.21": {-3_210_000_000, 5_000_000},
		"0.123456789": {123_456_789, 1}, "999999999.5": {999_999_999_500_000_000, 5_000_000}, "1000000000.25": {1_000_000_000_250_000_000, 5_000_000}, "0.1234567895": {123_456_790, 1}, "1.": {1_000_000_000, 5_000_000},
	} {
		if got, err := ParseAmount(text, 0); err != nil || got != want {
			t.Errorf("%s is %+v (%v), expected %+v", text, got, err, want)
		}
	}
	if got, err := ParseAmount("123.45", 2); err != nil || got.Nanodollars != 1_234_500_000 {
		t.Errorf("123.45 cents are %+v (%v)", got, err)
	}
	for _, text := range []string{"", "x", "1/3", "0x10", "1e999999999", "1_0", "NaN", "Inf", "99999999999999999999"} {
		if got, err := ParseAmount(text, 0); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// A file that several patterns or links name is read once. A report may have several files. A line item
// that stands in two is of two versions of the report, whatever its id and amount: the bill is refused.
func TestExportsThatOverlap(t *testing.T) {
	const heading = "identity_line_item_id,identity_time_interval,line_item_usage_account_id,line_item_usage_start_date,line_item_line_item_type,line_item_product_code,line_item_usage_type,line_item_usage_amount,line_item_unblended_cost,line_item_currency_code,pricing_unit\n"
	folder := t.TempDir()
	line := func(id, account, hour, amount string) string {
		return id + ",2026-10-05T" + hour + ":00:00Z/PT1H," + account + ",2026-10-05T" + hour + ":00:00.000Z,Usage,AmazonBedrock,USE1-NovaLite-input-tokens," + amount + ",0.0004,USD,1K tokens\n"
	}
	for name, lines := range map[string]string{
		"cur-1.csv": line("id1", "1", "09", "1.5") + line("id2", "1", "10", "1.5") + line("id3", "1", "10", "1.5"),
		"cur-2.csv": line("id1", "2", "09", "1.5") + line("id2", "1", "11", "1.5"),
		"new-1.csv": line("id8", "1", "08", "1.5") + line("id9", "1", "10", "2.5"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(heading+lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(folder, "cur-1.csv"), filepath.Join(folder, "link.csv")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	bill, err := Source{Provider: "aws", Files: []string{"cur-1.csv", "cur-*.csv", filepath.Join(folder, "cur-1.csv"), "link.csv"}}.Read(t.Context(), month)
	if err != nil || len(bill.Costs) != 1 || bill.Costs[0].Amount.Nanodollars != 5*400_000 {
		t.Errorf("%v, %+v", err, bill)
	}
	_, err = Source{Provider: "aws", Files: []string{"*.csv"}}.Read(t.Context(), month)
	if err == nil || !strings.Contains(err.Error(), "cur-1.csv") || !strings.Contains(err.Error(), "new-1.csv") || !strings.Contains(err.Error(), "one version") {
		t.Errorf("%v", err)
	}
}

// Two exports of Google's table that overlap are refused. What Google bills later of the same usage is
// another line.
func TestGoogleExportsThatOverlap(t *testing.T) {
	line := func(exported, amount string) string {
		return `{"billing_account_id":"b","sku":{"id":"s","description":"Gemini 2.5 Flash GA Text Input - Predictions"},"usage_start_time":"2026-10-05 09:00:00 UTC",` +
			`"export_time":"2026-10-05 ` + exported + `:00:00 UTC","cost":0.0003,"currency":"USD","cost_type":"regular","usage":{"amount":` + amount + `},"credits":[]}` + "\n"
	}
	const table = "sku_description,usage_start_time,export_time,cost,currency,usage_amount\nGemini 2.5 Flash GA Text Input - Predictions,2026-10-05,2026-10-06,0.0003,USD,1000\n"
	t.Chdir(t.TempDir())
	for name, lines := range map[string]string{
		"a.json": line("12", "1000") + line("12", "1000"), "b.json": line("13", "1000") + line("12", "2000"), "c.json": line("14", "1") + line("12", "2000"),
		"a.csv": table, "b.csv": table,
	} {
		if err := os.WriteFile(name, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bill, err := Source{Provider: "google", Files: []string{"a.json", "b.json", "a.csv"}}.Read(t.Context(), month)
	if err != nil || len(bill.Costs) != 1 || bill.Costs[0].Amount.Nanodollars != 5*300_000 {
		t.Errorf("%v, %+v", err, bill)
	}
	for _, files := range [][]string{{"b.json", "c.json"}, {"a.csv", "b.csv"}} {
		_, err := Source{Provider: "google", Files: files}.Read(t.Context(), month)
		if err == nil || !strings.Contains(err.Error(), files[0]) || !strings.Contains(err.Error(), files[1]) || !strings.Contains(err.Error(), "each line once") {
			t.Errorf("%v", err)
		}
	}
}

// A part of a compressed export is an error, and so is a row without an end. Columns may stand in any order.
func TestDamagedExports(t *testing.T) {
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	fmt.Fprint(z, cur)
	z.Close()
	for size := range compressed.Len() {
		if err := NewFileBill("bedrock").AddAWS(bytes.NewReader(compressed.Bytes()[:size])); err == nil {
			t.Errorf("%d bytes of %d are taken for all", size, compressed.Len())
		}
	}
	endless := io.MultiReader(strings.NewReader(cur+"\""), io.LimitReader(zeros{}, 1<<40))
	if err := NewFileBill("bedrock").AddAWS(endless); err == nil || !strings.Contains(err.Error(), "a quote without an end") {
		t.Error(err)
	}
	lines, err := csv.NewReader(strings.NewReader(cur)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var reversed strings.Builder
	w := csv.NewWriter(&reversed)
	for _, line := range lines {
		slices.Reverse(line)
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	one, other := NewFileBill("bedrock"), NewFileBill("bedrock")
	if err := errors.Join(one.AddAWS(strings.NewReader(cur)), other.AddAWS(strings.NewReader(reversed.String()))); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(one.Costs, other.Costs) || !reflect.DeepEqual(one.Usage, other.Usage) || len(one.Costs) == 0 {
		t.Errorf("%+v, reversed %+v", one.Costs, other.Costs)
	}
}

// zeros are bytes without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Amounts that overflow are an error where they are read.
func TestExportsThatOverflow(t *testing.T) {
	for _, huge := range [][2]string{{",0.0004,", ",9000000000,"}, {",1.5,", ",9000000000000000,"}, {",1.5,", ",9000000000000000000,"}} {
		text := strings.Replace(cur, huge[0], huge[1], 1)
		if err := NewFileBill("bedrock").AddAWS(strings.NewReader(text)); !errors.Is(err, ErrOverflow) {
			t.Errorf("%.200q: %v", text, err)
		}
	}
}
