package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins/catalog"
)

// Each built-in price fits its family, or overrides.txt says why it does not.
func TestPricesFitTheirFamilies(t *testing.T) {
	if n := checkFamilies(catalog.Default()); n > 0 {
		t.Errorf("%d prices are unlike others: correct them, or give the reasons in overrides.txt", n)
	}
	for _, o := range overrides {
		if o.fields[0] == family && !o.used {
			t.Errorf("overrides.txt:%d: explains nothing any more; delete it", o.line)
		}
	}
}

// Each kind of mistake is found.
func TestSuspicions(t *testing.T) {
	const standard = `{"input":"1","output":"4"}`
	for prices, want := range map[string]string{
		standard: "",
		`{"input":"1","output":"4","cache_read":"2"}`:                                                   "cache_read is $2",
		`{"input":"1","output":"4","cache_write":"3"}`:                                                  "cache_write $3",
		`{"input":"1","output":"4","cache_write":"1.25","cache_write_1h":"1"}`:                          "cache_write_1h $1",
		`{"input":"4","output":"1"}`:                                                                    "output $1",
		`{"input":"1","output":"4","reasoning":"40"}`:                                                   "reasoning $40",
		standard + `,{"tier":"batch","input":"0.9","output":"2"}`:                                       "in the standard tier",
		standard + `,{"tier":"priority","input":"0.5","output":"2"}`:                                    "in the standard tier",
		standard + `,{"tier":"flex","input":"2","output":"4"}`:                                          "in the standard tier",
		standard + `,{"input_above":200000,"input":"0.5","output":"4"}`:                                 "input above 200000 tokens",
		`{"from":"2026-02-01","input":"1","output":"4"},{"from":"2026-01-01","input":"2","output":"4"}`: "is hidden by",
	} {
		c, err := catalog.Parse([]byte(`{"version":"2026-11-12","providers":[{"id":"a","models":[{"id":"m","prices":[` + prices + `]}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		got := suspicions(c)
		if len(got) > 0 != (want != "") || want != "" && !strings.Contains(got[0].what, want) {
			t.Errorf("%s: %+v, want %q", prices, got, want)
		}
	}
	c, err := catalog.Parse([]byte(`{"version":"2026-11-12","providers":[
		{"id":"a","models":[{"id":"m","prices":[` + standard + `]},{"id":"m-2026-01-01","prices":[{"input":"2","output":"4"}]}]},
		{"id":"b","models":[{"id":"x/m","prices":[` + standard + `]}]},{"id":"c","models":[{"id":"M","prices":[{"input":"6","output":"24"}]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := suspicions(c); len(got) != 3 { // the snapshot, and both rates of c
		t.Errorf("%+v", got)
	}
}

// A price is alone if every judge that has the model has another one. A judge may be missing.
func TestJudges(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		genaiFile:     `[{"id":"openai","models":[{"id":"m","match":{"equals":"m"},"prices":{"input_mtok":1,"output_mtok":4}},{"id":"n","match":{"regex":"^(?!x)n"},"prices":{"input_mtok":1,"output_mtok":4}}]}]`,
		modelsDevFile: `{"openai":{"models":{"m":{"id":"m","cost":{"input":9,"output":9}},"n":{"id":"n","cost":{"input":9,"output":9}}}}}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := readJudges(folder)
	if err != nil {
		t.Fatal(err)
	}
	builtin, err := catalog.Parse([]byte(`{"version":"2026-11-12","providers":[{"id":"openai","models":[
		{"id":"m","prices":[{"input":"1","output":"4"}]},{"id":"n","prices":[{"input":"2","output":"4"}]},{"id":"o","prices":[{"input":"2","output":"4"}]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if compared, alone := c.judge(builtin); compared != 2 || alone != 1 {
		t.Errorf("%d compared, %d alone", compared, alone)
	}
}
