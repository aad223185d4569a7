package llmcommand

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/internal/stores/storestest"
)

// controlled runs a site that is administered.
func controlled(t *testing.T) (address string) {
	t.Helper()
	t.Setenv(keyEnv, "secret")
	address = freeport.Address(t)
	config := fmt.Sprintf(`{
		"admin": {"disabled": true, "config": {"persist": false}},
		"logging": {"logs": {"default": {"level": "ERROR"}}},
		"apps": {
			"llm": {
				"stores": {"default": {"storage": {"backend": "sqlite", "path": %q}}},
				"keys": [{"secret": "secret", "scopes": ["admin"]}]
			},
			"http": {"servers": {"a": {"listen": [%q], "automatic_https": {"disable": true}, "routes": [{"handle": [{"handler": "llm_control"}]}]}}}
		}
	}`, t.TempDir()+"/weir.db", address)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storestest.Stop(t) })
	return "http://" + address
}

// badKeys are rows that no import takes.
const badKeys = `hash-canary-06,sk-...canary,search agents,0,,{},{},,,{},f,,,,,{},2026-05-06 10:00:00,,
hash-canary-07,sk-...canary,no amount,0,,{},{},,,{},f,,,much,,{},2026-05-07 10:00:00,,
hash-canary-08,sk-...canary,months,0,,{},{},,,{},f,,,5,3mo,{},2026-05-08 10:00:00,,
hash-canary-09,sk-...canary,no window,0,,{},{},,,{},f,,,5,30x,{},2026-05-09 10:00:00,,
hash-canary-10,sk-...canary,depends,0,,{no-default-models},{},,,{},f,,,,,{},2026-05-10 10:00:00,,
hash-canary-11,sk-...canary,manages,0,,{},{},,,{},f,,,,,{management_routes},2026-05-11 10:00:00,,
hash-canary-12,sk-...canary,blocked how,0,,{},{},,,{},maybe,,,,,{},2026-05-12 10:00:00,,
hash-canary-13,broken
`

// The table of LiteLLM's keys, as Postgres writes it, becomes keys with the same names, owners,
// models, limits and ends, and new secrets. What a key could do there and a key of Weir cannot be
// kept from is refused.
func TestImportKeys(t *testing.T) {
	address := controlled(t)
	dir := t.TempDir()
	secrets, refused := dir+"/secrets", dir+"/refused"
	in := func(args ...string) (out, stderr string, err error) {
		var b bytes.Buffer
		stderr, err = run(t.Context(), importCommand, &b, append(args, "--address", address)...)
		return b.String(), stderr, err
	}
	ask := func(path string) gjson.Result {
		t.Helper()
		c := &client{http: http.DefaultClient, address: address, key: "secret", stderr: os.Stderr}
		data, err := c.ask(t.Context(), http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	good, err := os.ReadFile("testdata/litellm-keys.csv")
	if err != nil {
		t.Fatal(err)
	}
	file := dir + "/keys.csv"
	if err := os.WriteFile(file, append(good, badKeys...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := in("litellm-keys", file, "--dry-run")
	if err == nil || !strings.Contains(out, "13 rows: 5 new keys") || ask("/v1/keys").Get("items.#").Int() != 0 {
		t.Fatalf("the dry run says %q, %v", out, err)
	}
	if _, _, err := in("litellm-keys", file); err == nil || !strings.Contains(err.Error(), "--secrets") {
		t.Errorf("without a file for the secrets: %v", err)
	}
	out, stderr, err := in("litellm-keys", file, "--secrets", secrets, "--refused", refused)
	if err == nil || !strings.Contains(err.Error(), "8 of 13 rows") {
		t.Errorf("the import ends with %v", err)
	}
	for _, line := range []string{
		"13 rows: 4 new keys at " + address, "1 not imported: a key that has ended", "not kept: metadata of 1 keys",
		"1 refused: another row has the same name", "1 refused: the value has another type: max_budget", "1 refused: the value has another type: blocked",
		"1 refused: budget_duration: there is no window of several months", "1 refused: no-default-models", "1 refused: allowed_routes", "1 refused: it is no line of CSV",
		"1 refused: the site refuses the key",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("the report does not say %q:\n%s", line, out)
		}
	}
	keys := ask("/v1/keys").Get("items")
	if keys.Get("#").Int() != 4 {
		t.Errorf("there are %s", keys.Raw)
	}
	for path, want := range map[string]string{
		`#(name=="search agents").owner`: `"ada"`, `#(name=="search agents").project`: `"search"`, `#(name=="search agents").models`: `["gpt-5-mini","anthropic/*"]`,
		`#(name=="search agents").expires_at`: `"2099-01-31T12:00:00.000Z"`, `#(name=="search agents").disabled`: "false", `#(name=="search agents").scopes`: `["gateway","log"]`,
		`#(name=="key of bo 2026-05-02 10:00:00").models`: "", `#(name=="key of bo 2026-05-02 10:00:00").disabled`: "false",
		`#(name=="off").disabled`: "true", `#(name=="of a team").models`: `["gpt-4o"]`,
	} {
		if got := keys.Get(path).Raw; got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	limits := map[string]string{}
	for _, b := range ask("/v1/budgets").Get("items").Array() {
		id := b.Get("filter.request_response_rmt.key_id.equals").Str
		of := keys.Get(`#(id=="` + id + `").name`).Str
		limits[of] += b.Get("quantity").Str + " " + b.Get("limit").Raw + " " + b.Get("window").Str + ";"
	}
	for name, want := range map[string]string{"search agents": "usd 12.5 30d;requests 100 1m;", "off": "usd 5 total;", "of a team": "usd 1 month;tokens 2000 1m;"} {
		if limits[name] != want {
			t.Errorf("the limits of %s are %q, want %q", name, limits[name], want)
		}
	}
	info, err := os.Stat(secrets)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	told, err := os.ReadFile(secrets)
	if err != nil || strings.Count(string(told), "\n") != 4 {
		t.Fatalf("%s, %v", told, err)
	}
	for line := range strings.Lines(string(told)) {
		c := &client{http: http.DefaultClient, address: address, key: gjson.Get(line, "secret").Str, stderr: os.Stderr}
		own, err := c.ask(t.Context(), http.MethodGet, "/v1/key", nil)
		if off := gjson.Get(line, "name").Str == "off"; off == (err == nil) || !off && own.Get("id").Str != gjson.Get(line, "id").Str {
			t.Errorf("the secret of %s opens %s, %v", gjson.Get(line, "name").Str, own.Raw, err)
		}
	}
	left, err := os.ReadFile(refused)
	if err != nil || strings.Count(string(left), "\n") != 8 {
		t.Errorf("%s, %v", left, err)
	}
	for what, text := range map[string]string{"stdout": out, "stderr": stderr, "the refused rows": string(left), "the secrets": string(told), "the audit": ask("/v1/audit").Raw} {
		if strings.Contains(text, "canary") {
			t.Errorf("%s has a hash or a secret of LiteLLM: %s", what, text)
		}
	}
	// The rows that stay, again and as JSON.
	if out, _, _ := in("litellm-keys", file, "--secrets", dir+"/again"); !strings.Contains(out, "13 rows: 0 new keys") || !strings.Contains(out, "4 already there") {
		t.Errorf("again: %s", out)
	}
	table := `[{"token":"h","key_alias":"json","models":["openai/*"],"blocked":false,"max_budget":0.5,"budget_duration":"2w","expires":"2099-01-31T12:00:00","team_id":null},
		{"token":"h","key_alias":"unknown team","models":[],"team_id":"t1"},{"token":"h","key_alias":"nothing","models":[],"max_budget":0},
		{"token":"h","key_alias":"elsewhere","models":[],"budget_id":"b1"},{"token":"h","key_alias":"parallel","models":[],"max_parallel_requests":2},
		{"token":"h","key_alias":"of models","models":[],"model_max_budget":{"gpt-5":{"budget_limit":1}}},{"token":"h","key_alias":"json","models":[],"model_max_budget":{},"max_parallel_requests":null}]`
	if err := os.WriteFile(dir+"/keys.json", []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, _ = in("litellm-keys", dir+"/keys.json", "--secrets", dir+"/json")
	if !strings.Contains(out, "7 rows: 1 new keys") || !strings.Contains(out, "1 refused: budget_id") || !strings.Contains(out, "1 refused: max_parallel_requests") || !strings.Contains(out, "1 refused: model_max_budget") || !strings.Contains(out, "add team_models") || !strings.Contains(out, "above 0") {
		t.Errorf("JSON: %s", out)
	}
	if b := ask("/v1/budgets").Get(`items.#(window=="14d")`); b.Get("limit").Raw != "0.5" {
		t.Errorf("the budget is %s", b.Raw)
	}
	for _, flags := range [][]string{{"litellm-keys", file, "--replace"}, {"litellm", file, "--secrets", dir + "/x"}} {
		if _, _, err := in(flags...); err == nil || !strings.Contains(err.Error(), "is not for") {
			t.Errorf("%q: %v", flags, err)
		}
	}
}

// A table of 10,000 keys, of which 1,000 are broken in different ways, is accounted for to the last
// row, and importing the table again changes nothing.
func TestImportKeysAccountsForManyRows(t *testing.T) {
	address := controlled(t)
	dir := t.TempDir()
	var rows strings.Builder
	for n := range manyKeys {
		row := map[string]any{"token": "hash", "key_alias": fmt.Sprint("key ", n), "models": []string{"gpt-5-mini"}, "blocked": false}
		switch n % 100 {
		case 9, 19:
			row = nil
		case 29, 39:
			row["max_budget"] = "much"
		case 49, 59:
			row["key_alias"] = fmt.Sprint("key ", n-1)
		case 69, 79:
			row["models"] = []string{"no-default-models"}
		case 89, 99:
			row["allowed_routes"] = []string{"management_routes"}
		case 50:
			row["max_budget"], row["budget_duration"], row["rpm_limit"] = 5, "30d", 100
		}
		rows.Write(append(rowText(row), '\n'))
	}
	file := dir + "/keys.jsonl"
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	most, broken := formatCount(int64(manyKeys*9/10)), manyKeys/10
	for _, step := range []struct{ name, flag, says string }{
		{"dry", "--dry-run", most + " new keys"}, {"first", "--secrets=" + dir + "/first", most + " new keys"}, {"again", "--secrets=" + dir + "/again", most + " already there"},
	} {
		var out bytes.Buffer
		began := time.Now()
		_, err := run(t.Context(), importCommand, &out, "litellm-keys", file, "--address", address, step.flag, "--refused", dir+"/refused "+step.name)
		t.Logf("%s: %v", step.name, time.Since(began))
		if want := fmt.Sprintf("%s of %s rows could not be imported", formatCount(int64(broken)), formatCount(int64(manyKeys))); err == nil || err.Error() != want || !strings.Contains(out.String(), step.says) {
			t.Errorf("%s ends with %v, and says\n%s", step.name, err, &out)
		}
	}
	for name, want := range map[string]int{"/first": manyKeys - broken, "/again": 0, "/refused dry": broken, "/refused first": broken, "/refused again": broken} {
		text, err := os.ReadFile(dir + name)
		if err != nil || bytes.Count(text, []byte("\n")) != want {
			t.Errorf("%s has %d lines, want %d; %v", name, bytes.Count(text, []byte("\n")), want, err)
		}
	}
}
