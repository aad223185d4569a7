package caddyfile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/weirhq/weir/internal/testkit/freeport"
)

// What is found when a configuration is provisioned is told like what is found in the
// Caddyfile: in one sentence, with the line and what to do. The line of the mistake ends
// in <<.
func TestProvisionedMistakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEIR_TEST_KEY", "canary")
	global := func(lines string) string {
		return "{\n\tadmin off\n\tpersist_config off\n\tllm {\n" + lines + "\n\t}\n}\n:0 {\n\tllm_gateway\n}\n"
	}
	with := func(lines string) string { return global("store sqlite " + dir + "/weir.db\n" + lines) }
	for name, tc := range map[string]struct{ source, want string }{
		"unset key":                {with("provider echo\nkey {env.WEIR_TEST_UNSET} <<"), "key: the environment variable WEIR_TEST_UNSET is not set; set it where Weir is started"},
		"unset key of an org":      {with("provider echo\nkey {env.WEIR_TEST_KEY}\norg acme {\nkey {env.WEIR_TEST_UNSET} query <<\n}"), "key: the environment variable WEIR_TEST_UNSET is not set"},
		"unset key of a provider":  {with("provider openai {\napi_key {env.WEIR_TEST_UNSET} <<\n}"), "api_key: the environment variable WEIR_TEST_UNSET is not set"},
		"unset key of its own":     {with("provider openai {\napi_key {env.WEIR_TEST_KEY}\n}\norg acme {\nprovider openai {\napi_key {env.WEIR_TEST_UNSET} <<\n}\n}"), "api_key: the environment variable WEIR_TEST_UNSET is not set"},
		"unset address":            {with("provider openai {\nbase_url {env.WEIR_TEST_UNSET}/v1 <<\n}"), "base_url: the environment variable WEIR_TEST_UNSET is not set"},
		"no key of its own":        {with("provider openai {\napi_key {env.WEIR_TEST_KEY}\n}\norg acme {\nprovider openai <<\n}"), "set an api_key of its own; the credentials for all are not inherited"},
		"unknown alias":            {with("provider echo\nalias fast echo/echo-1\nalias slow opnai/gpt-5 <<"), "alias slow: "},
		"store of an org":          {with("provider echo\norg acme {\nkey a\nstore eu <<\n}"), "no store is named eu (have [default])"},
		"key of two orgs":          {with("provider echo\norg acme {\nkey canary\n}\norg globex {\nkey canary <<\n}"), "org globex has a key that org acme has already: each key belongs to one organisation"},
		"identity of an org":       {with("provider echo\norg acme {\nidentity jwt https://login.example.com { <<\naudience weir\nscopes query\norg tenant\n}\n}"), "an identity of the organisation acme cannot name others"},
		"one place":                {with("provider echo\nstore eu sqlite " + dir + "/./weir.db <<"), "are the same place"},
		"catalogue that is none":   {with("provider echo\ncatalog " + file + " <<"), "catalog: "},
		"catalogue that is gone":   {with("provider echo\ncatalog " + dir + "/prices.json <<"), "no such file"},
		"prefix":                   {with("provider echo\nheader_prefix a:b <<"), `header_prefix "a:b": no header can start so`},
		"property":                 {with("provider echo\nheader_prefix Helicone\nproperty_names a:b <<"), `property_names: "a:b" is no part of a header name`},
		"folder below a file":      {global("provider echo\nstore eu sqlite " + dir + "/eu.db\nstore sqlite " + file + "/x/weir.db <<"), "store default: " + file + " cannot be written by the user "},
		"folder of another store":  {global("provider echo\nstore sqlite " + dir + "/weir.db\nstore eu sqlite " + file + "/weir.db <<"), "store eu: " + file + " cannot be written by the user "},
		"folder as a store":        {global("provider echo\nstore sqlite " + dir + " <<"), dir + " is a directory: name a file in it, as in `sqlite " + dir + "/weir.db`"},
		"bodies after records":     {global("provider echo\nstore sqlite " + dir + "/weir.db { <<\nretention 30d\ncontent_retention 90d\n}"), "content_retention 2160h0m0s is longer than retention 720h0m0s"},
		"alias of an alias":        {with("provider echo\nalias fast echo/echo-1\nalias best fast <<"), "alias best: fast is an alias, too: name its models"},
		"provider of a bill":       {with("provider echo\nbill mistral { <<\nadmin_key {env.WEIR_TEST_KEY}\n}"), `"mistral" has no bill that can be read; expected one of anthropic, aws, google, openai, openrouter`},
		"key of a bill":            {with("provider echo\nbill openai { <<\nadmin_key canary\n}"), "admin_key: expected {env.NAME} or {file./path}, and not the key itself"},
		"bill twice":               {with("provider echo\norg acme {\nbill openai { <<\nadmin_key {env.WEIR_TEST_KEY}\n}\nbill openai {\nadmin_key {env.WEIR_TEST_KEY}\n}\n}"), "bill openai is given twice; give one of them another name"},
		"bill of files with a key": {with("provider echo\nbill aws { <<\nfiles a.csv\nadmin_key {env.WEIR_TEST_KEY}\n}"), "files are read without a key: leave out admin_key and url"},
		"unset path":               {global("provider echo\nstore sqlite {env.WEIR_TEST_UNSET}/weir.db <<"), "WEIR_TEST_UNSET"},
	} {
		t.Run(name, func(t *testing.T) {
			before, _, _ := strings.Cut(tc.source, " <<")
			source := strings.Replace(tc.source, " <<", "", 1)
			text, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(source), map[string]any{"filename": "Caddyfile"})
			if err != nil {
				t.Fatal(err)
			}
			var config *caddy.Config
			if err := json.Unmarshal(text, &config); err != nil {
				t.Fatal(err)
			}
			err = caddy.Validate(config)
			where := ", at Caddyfile:" + strconv.Itoa(1+strings.Count(before, "\n"))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasSuffix(err.Error(), where) {
				t.Errorf("got\n%v\nwant\n… %s … %s", err, tc.want, where)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Error("a secret is repeated")
			}
		})
	}
}

// A site on which two handlers would record and charge each call is refused when it is loaded. If other calls
// pass only the first one, the log says that those that reach the second one are refused. Where neither is
// known, or no request reaches the second one, nothing is said.
func TestTwoRecordersAreNotLoaded(t *testing.T) {
	dir := t.TempDir()
	const (
		each = "two `llm_log` would record and charge each call twice"
		some = "two `llm_log` would record and charge some calls twice"
	)
	for name, tc := range map[string]struct{ site, want, warning string }{
		"in front of a proxy":             {"llm_log openai <<\nllm_proxy openai", "llm_log openai: " + each, ""},
		"in a route":                      {"route {\nllm_log <<\nroute {\nllm_proxy openai\n}\n}", "llm_log: " + each, ""},
		"within a block":                  {"handle_path /a/* {\nroute {\nllm_log openai <<\nllm_proxy openai\n}\n}", "llm_log openai: " + each, ""},
		"around a proxy":                  {"llm_log\nhandle_path /a/* {\nllm_proxy openai\n}", "", some},
		"around one path of many":         {"llm_log\nhandle_path /a/* {\nllm_proxy anthropic\n}\nreverse_proxy http://127.0.0.1:9", "", some},
		"in front of a proxy of a path":   {"llm_log openai\nllm_proxy /a/* anthropic\nreverse_proxy http://127.0.0.1:9", "", some},
		"in front of an answer to some":   {"route {\nllm_log\nrespond /a/* 404\nllm_proxy openai\n}", "", some},
		"in front of files":               {"route {\nllm_log\nfile_server\nllm_proxy openai\n}", "", ""},
		"behind an answer":                {"route {\nrespond 404\nllm_log\nllm_proxy openai\n}", "", ""},
		"for some requests":               {"llm_log /a/*\nllm_proxy /b/* openai", "", ""},
		"in blocks of which one is taken": {"handle /a/* {\nllm_log\n}\nhandle {\nllm_proxy openai\n}", "", ""},
		"behind one that answers":         {"route {\nllm_proxy openai\nllm_proxy anthropic\n}", "", ""},
		"in front of a named route":       {"route {\nllm_log openai <<\ninvoke shared\n}", "llm_log openai: " + each, ""},
		"around a named route for some":   {"route {\nllm_log\ninvoke /a/* shared\n}", "", some},
		"in one of two named routes":      {"invoke /a/* shared\ninvoke shared", "", ""},
		"in a route that invokes itself":  {"invoke itself", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			logs, named := filepath.Join(t.TempDir(), "log"), ""
			if strings.Contains(tc.site, "invoke") {
				named = "&(shared) {\nllm_proxy anthropic\n}\n&(itself) {\nllm_log\ninvoke itself\n}\n"
			}
			source := "{\nadmin off\npersist_config off\nauto_https off\nlog {\noutput file " + logs + "\n}\nllm {\nstore sqlite " + dir + "/weir.db\n}\n}\n" + named + "http://" + freeport.Address(t) + " {\n" + tc.site + "\n}\n"
			before, _, _ := strings.Cut(source, " <<")
			text, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(strings.Replace(source, " <<", "", 1)), map[string]any{"filename": "Caddyfile"})
			if err != nil {
				t.Fatal(err)
			}
			err = caddy.Load(text, true)
			defer func() { _ = caddy.Stop() }()
			logged, readErr := os.ReadFile(logs)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if n := strings.Count(string(logged), "would record and charge"); tc.warning == "" && tc.want == "" && n > 0 || tc.warning != "" && (n != 1 || !strings.Contains(string(logged), tc.warning)) {
				t.Errorf("logged\n%s\nwant %q", logged, tc.warning)
			}
			where := ", at Caddyfile:" + strconv.Itoa(1+strings.Count(before, "\n"))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasSuffix(err.Error(), where)) {
				t.Errorf("got\n%v\nwant\n… %s … %s", err, tc.want, where)
			}
		})
	}
}
