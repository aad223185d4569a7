package llmcommand

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/internal/stores/storestest"
)

// importSite runs a site with llm_otlp and llm_query, for the commands that follow. What is
// given goes into its store.
func importSite(t *testing.T, store ...string) {
	t.Helper()
	address := freeport.Address(t)
	config := fmt.Sprintf(`{
		"admin": {"disabled": true, "config": {"persist": false}},
		"logging": {"logs": {"default": {"level": "ERROR"}}},
		"apps": {
			"llm": {"stores": {"default": {%s"storage": {"backend": "sqlite", "path": %q}}}, "keys": [{"secret": "secret"}]},
			"http": {"servers": {"site": {"listen": [%q], "automatic_https": {"disable": true}, "routes": [{"handle": [{"handler": "llm_otlp"}, {"handler": "llm_query"}]}]}}}
		}
	}`, strings.Join(store, ""), filepath.Join(t.TempDir(), "weir.db"), address)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storestest.Stop(t) })
	t.Setenv(keyEnv, "secret")
	t.Setenv(addressEnv, "http://"+address)
}

// storedRecords are all records, the oldest first.
func storedRecords(t *testing.T) []gjson.Result {
	t.Helper()
	if err := stores.InUse()[0].Opened().Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := run(t.Context(), exportCommand, &out); err != nil {
		t.Fatal(err)
	}
	var records []gjson.Result
	for line := range strings.Lines(out.String()) {
		records = append(records, gjson.Parse(line))
	}
	return records
}

// An export of each product becomes records, once however often it is imported; what is
// no call or has no place is named.
func TestImport(t *testing.T) {
	for _, c := range []struct {
		product, file string
		says          []string            // on stdout, in this order
		fails         string              // the error, "" for none
		records       []map[string]string // fields as JSON
	}{{
		product: "helicone", file: "testdata/helicone.jsonl", fails: "1 of 4 rows could not be imported",
		says: []string{"1 refused: it has no id", "not kept: country_code of 1 calls"},
		records: []map[string]string{{
			"request_created_at": `"2026-09-01T10:00:00.000Z"`, "delay_ms": "1200", "time_to_first_token": "300", "provider": `"openai"`,
			"model": `"gpt-4o-mini-2024-07-18"`, "request_path": `"/v1/chat/completions"`, "response_status": "200", "end_state": `"complete"`,
			"prompt_tokens": "100", "completion_tokens": "20", "prompt_cache_read_tokens": "64", "cost": "0.000027", "finish_reason": `"stop"`,
			"request_user_id": `"ada"`, "prompt_id": `"greeting"`, "properties.environment": `"production"`, "properties.Service-Session-Id": `"s-1"`,
			"scores.accuracy": "90", "feedback_rating": "true", "request_body.tools.0.function.name": `"track"`,
			"response_body.choices.0.message.content": `"On its way."`, "trace_id": `"5b8efff798034103d269b633813fc601"`,
		}, {
			"response_status": "529", "provider": `"anthropic"`, "error_type": `"overloaded_error"`, "cost": "0", "request_body.system": `"Be brief."`,
		}, {
			"response_status": "null", "end_state": `"failed"`, "request_body": "null",
		}},
	}, {
		product: "litellm", file: "testdata/litellm.csv",
		says: []string{"not kept: cache_key of 1 calls", "not kept: model_id of 1 calls"},
		records: []map[string]string{{
			"request_created_at": `"2026-09-02T08:00:00.000Z"`, "delay_ms": "2000", "time_to_first_token": "500", "provider": `"openai"`,
			"request_model": `"gpt-4o"`, "response_model": `"gpt-4o-2024-08-06"`, "cost": "0.0015", "prompt_tokens": "100", "prompt_cache_read_tokens": "40",
			"request_user_id": `"bob"`, "properties.Service-Session-Id": `"s-9"`, "properties.team_id": `"team-1"`, "properties.request_tags": `"job:7"`,
			"properties.user": `"staff"`, "properties.caller": `"batch"`, "properties.feature": `"search"`,
			"request_body.messages.0.content": `"Sort these."`, "response_body.choices.0.message.content": `"Sorted."`,
		}, {
			"model": `"text-embedding-3-small"`, "request_user_id": `"staff"`, "prompt_tokens": "8", "completion_tokens": "0", "request_body": "null",
		}, {
			"response_status": "429", "error_type": `"RateLimitError"`,
		}},
	}, {
		product: "langfuse", file: "testdata/langfuse.json",
		says: []string{"1 not imported: observations of the type span", "1 not imported: traces", "not kept: statusMessage of 1 calls"},
		records: []map[string]string{{
			"trace_id": `"0af7651916cd43dd8448eb211c80319c"`, "span_id": `"b7ad6b7169203331"`, "provider": `"anthropic"`, "model": `"claude-sonnet-4-5"`,
			"delay_ms": "1000", "time_to_first_token": "300", "prompt_tokens": "100", "prompt_cache_read_tokens": "90", "completion_tokens": "5",
			"cost": "0.000132", "request_user_id": `"cy"`, "prompt_id": `"greet"`, "prompt_version": `"2"`, "scores": `{"helpful":0.75}`,
			"properties":                      `{"Service-Session-Id":"s-3","langfuse.environment":"production","langfuse.observation.name":"llm","langfuse.trace.name":"answer","langfuse.trace.tags":"beta,eu","tenant":"acme"}`,
			"request_body":                    `{"model":"claude-sonnet-4-5","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}],"temperature":0.2,"stream":true}`,
			"response_body.choices.0.message": `{"role":"assistant","content":"Hi."}`,
		}, {
			"provider": `"custom"`, "model": `"a-model-of-ours"`, "cost": "0.000007", "prompt_tokens": "3", "request_body.messages.0.content": `"Hello again"`,
		}},
	}, {
		product: "portkey", file: "testdata/portkey.jsonl", fails: "1 of 4 rows could not be imported",
		says: []string{"1 refused: it has no id", "not kept: cost of 1 calls", "not kept: mode of 1 calls"},
		records: []map[string]string{{
			"request_created_at": `"2026-09-03T10:00:00.000Z"`, "delay_ms": "1200", "provider": `"openai"`, "model": `"gpt-4o-mini-2024-07-18"`,
			"request_path": `"/v1/chat/completions"`, "response_status": "200", "prompt_tokens": "100", "completion_tokens": "20", "cost": "0.0057",
			"request_user_id": `"ada"`, "prompt_id": `"greeting"`, "properties": `{"config":"pc-fast","environment":"production"}`,
			"request_body.messages.0.content": `"Where is my parcel?"`, "request_body.headers": "", "response_body.choices.0.message.content": `"On its way."`,
			"trace_id": `"5b8efff798034103d269b633813fc601"`,
		}, {
			"response_status": "529", "provider": `"anthropic"`, "error_type": `"overloaded_error"`, "request_body.model": `"claude-sonnet-4-5"`,
		}, {
			"provider": `"vertex"`, "model": `"gemini-2.5-flash"`, "end_state": `"upstream_aborted"`, "prompt_tokens": "7", "request_body": "null",
		}},
	}, {
		product: "tensorzero", file: "testdata/tensorzero.jsonl", fails: "1 of 9 rows could not be imported",
		says: []string{
			"1 not imported: feedback of episodes", "2 not imported: feedback; it is said", "1 not imported: inferences", "1 not imported: rows of other tables",
			"1 refused: it has no id",
		},
		records: []map[string]string{{
			"request_created_at": `"2026-09-04T10:00:00.000Z"`, "delay_ms": "1200", "provider": `"openai"`, "model": `"gpt-4o-mini-2024-07-18"`, "cost": "0.000027",
			"prompt_tokens": "100", "prompt_cache_read_tokens": "64", "completion_tokens": "20", "request_user_id": `"ada"`, "scores": `{"accuracy":0.75,"solved":1}`,
			"properties.Service-Session-Id": `"0198f000-0000-7000-8000-0000000000ee"`, "properties.environment": `"production"`,
			"properties.function_name": `"tensorzero::default"`, "properties.variant_name": `"openai::gpt-4o-mini"`,
			"request_body.messages.0.content": `"Where is my parcel?"`, "response_body.choices.0.message.content": `"On its way."`,
			"trace_id": `"0198f00000007000800000000000000a"`,
		}, {
			"request_created_at": `"2026-09-04T10:00:02.100Z"`, "time_to_first_token": "300", "provider": `"anthropic"`, "model": `"claude-sonnet-4-5-20250929"`,
			"request_model": `"claude-sonnet-4-5"`, "prompt_tokens": "8", "completion_tokens": "3", "finish_reason": `"end_turn"`,
			"response_body.content.0.text": `"Hi."`,
		}, {
			"provider": `"gemini"`, "model": `"gemini-2.5-flash"`, "cost": "0", "completion_tokens": "3", "request_body": "null",
		}},
	}} {
		t.Run(c.product, func(t *testing.T) {
			importSite(t)
			var first []gjson.Result
			for again := range 2 {
				var out bytes.Buffer
				stderr, err := run(t.Context(), importCommand, &out, c.product, c.file)
				if fmt.Sprint(err) != cmp.Or(c.fails, "<nil>") || (c.fails == "") != (stderr == "") {
					t.Fatalf("%v, stderr %q", err, stderr)
				}
				rest := out.String()
				calls := fmt.Sprintf(": %d new calls at ", len(c.records))
				if again == 1 {
					calls = fmt.Sprintf("%d already there", len(c.records))
				}
				for _, want := range append([]string{calls}, c.says...) {
					_, after, ok := strings.Cut(rest, want)
					if !ok {
						t.Errorf("it says\n%s\nwant %q", &out, want)
					}
					rest = after
				}
				if strings.Count(out.String(), "\n") != 1+again+len(c.says) {
					t.Errorf("it says more:\n%s", &out)
				}
				records := storedRecords(t)
				if first != nil && fmt.Sprint(records) != fmt.Sprint(first) {
					t.Errorf("a second import changes the records to %v", records)
				}
				first = records
			}
			if len(first) != len(c.records) {
				t.Fatalf("%d records", len(first))
			}
			for i, want := range c.records {
				for field, value := range want {
					if got := first[i].Get(field).Raw; got != value {
						t.Errorf("record %d: %s is %s, not %s", i, field, got, value)
					}
				}
			}
		})
	}
}

// What cannot be imported is an error that says where, and goes on where it can.
func TestImportRefusals(t *testing.T) {
	importSite(t)
	for _, c := range []struct{ product, text, want string }{
		{"datadog", `{}`, `"datadog": expected one of helicone, langfuse, litellm, litellm-keys, portkey, tensorzero`},
		{"helicone", "", "the file is empty"},
		{"helicone", `[{"request_id":"a"`, "the array does not end"},
		{"helicone", `[{"request_id":"a","request_created_at":"2026-09-01T10:00:00Z","response_status":200}`, "the array does not end"},
		{"helicone", `{"request_id":"a","request_created_at":"1996-09-01T10:00:00Z","response_status":200}`, "1 of 1 rows could not be imported"},
		{"helicone", "\ufeff" + `{"request_id":"a","request_created_at":"yesterday"}`, "1 of 1 rows could not be imported"},
		{"litellm", "request_id,startTime\na\n", "1 of 1 rows could not be imported"},
	} {
		file := filepath.Join(t.TempDir(), "export")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := run(t.Context(), importCommand, &out, c.product, file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: the error is %v", c.product, c.text, err)
		}
	}
}

// A duration that no call has is unknown, and makes no time before all records.
func TestImportKnowsNoEndlessCall(t *testing.T) {
	importSite(t)
	file := filepath.Join(t.TempDir(), "export")
	text := `{"request_id":"a","request_created_at":"2026-09-01T10:00:00Z","response_status":200,"delay_ms":9e15}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := run(t.Context(), importCommand, &out, "helicone", file); err != nil || !strings.Contains(out.String(), "another type: delay_ms of 1 calls") {
		t.Errorf("%v, and the import says\n%s", err, &out)
	}
	if records := storedRecords(t); len(records) != 1 || records[0].Get("delay_ms").Raw != "null" {
		t.Error(records)
	}
}

// What a file names reaches no terminal as it is: the file is another product's.
func TestImportDrivesNoTerminal(t *testing.T) {
	importSite(t)
	file := filepath.Join(t.TempDir(), "export")
	text := `{"request_id":"a","request_created_at":"2026-09-01T10:00:00Z","response_status":200,"\u001b]0;owned\u0007":1}
{"request_id":"b","request_created_at":"\u001b[2J"}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	stderr, err := run(t.Context(), importCommand, &out, "helicone", file)
	if said := out.String() + stderr; err == nil || strings.ContainsAny(said, "\x1b\a") || !strings.Contains(said, "owned") {
		t.Errorf("%v, %q", err, said)
	}
}

func TestPropertiesNamedLikeCredentialsAreNotImported(t *testing.T) {
	s := new(span)
	s.properties(map[string]string{"api_key": "canary", "Authorization": "canary", "team": "acme"})
	if said := fmt.Sprintf("%+v", s.Attributes); strings.Contains(said, "canary") || !strings.Contains(said, "acme") {
		t.Error(said)
	}
}
