package bound

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// Each hosted tool may be called as often as it says, and what one tool says bounds no other.
// Only Responses bound all calls together: vendors of other formats ignore the field.
func TestHostedCalls(t *testing.T) {
	m := &catalog.Model{}
	m.Context = 1000
	for _, c := range []struct {
		dialect plugins.Dialect
		fields  string
		want    int64
	}{
		{plugins.Messages, `"tools":[{"type":"web_search_20250305"}]`, 10},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305","max_uses":3}]`, 3},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305","max_uses":1,"max_uses":3}]`, 3},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305","max_uses":500}]`, 500},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305","max_uses":null}]`, 10},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305","max_uses":1e300}]`, 10_000},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305"},{"type":"web_fetch_20250910","max_uses":1}]`, 11},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305"},{"name":"f","input_schema":{},"max_uses":1}]`, 10},
		{plugins.Messages, `"tools":[{"type":"web_search_20250305","max_uses":5},{"type":"web_search_20260209","max_uses":5}]`, 10},
		{plugins.Responses, `"max_tool_calls":2,"tools":[{"type":"web_search"}]`, 2},
		{plugins.Responses, `"max_tool_calls":null,"tools":[{"type":"web_search"}]`, 10},
		{plugins.Responses, `"input":[{"type":"additional_tools","tools":[{"type":"function","name":"f"},{"type":"web_search"}]}]`, 10},
		{plugins.Chat, `"max_tool_calls":1,"web_search_options":{}`, 10},
	} {
		body := fmt.Sprintf(`{"model":"m",%s}`, c.fields)
		d := Of(c.dialect, objectOf(body), nil)
		if got := d.Usage(m, UpperBound, int64(len(body)), 1, 1).WebSearches.N; got != c.want {
			t.Errorf("%s: %d searches, want %d", body, got, c.want)
		}
	}
}

// A compaction reads what the model reads once more, and writes beside the limit of the answer.
func TestCompactionsAreSetAside(t *testing.T) {
	m := &catalog.Model{}
	m.Context, m.MaxOutput = 1000, 100
	for management, want := range map[string][2]int64{
		`{"edits":[{"type":"clear_tool_uses_20250919"}]}`:                                  {1000, 5},
		`{"edits":[{"type":"compact_20260112"}]}`:                                          {2000, 105},
		`{"edits":[{"type":"clear_tool_uses_20250919"},{"type":"comp\u0061ct_20260112"}]}`: {2000, 105},
		`{"edits":[{"type":"clear_a","type":"compact_20260112"}]}`:                         {2000, 105},
		`[{"type":"compaction","compact_threshold":1000}]`:                                 {2000, 105}, // of Responses
	} {
		body := `{"model":"m","max_tokens":5,"context_management":` + management + `}`
		d := Of(plugins.Messages, objectOf(body), nil)
		u := d.Usage(m, UpperBound, int64(len(body)), 5, 1)
		if got := [2]int64{u.Input.N, u.Output.N}; got != want {
			t.Errorf("%s: %d tokens, want %d", management, got, want)
		}
	}
}

// A model reads each text of a list by itself, so that its limit bounds no more than one of them.
func TestEachPromptMayBeAsLongAsTheModelReads(t *testing.T) {
	m := &catalog.Model{}
	m.Context = 1000
	long := strings.Repeat("a", 5000)
	for _, c := range []struct {
		dialect plugins.Dialect
		fields  string
		want    int64
	}{
		{plugins.Embeddings, `"input":"` + long + `"`, 1000},
		{plugins.Embeddings, `"input":["` + long + `","` + long + `"]`, 2000},
		{plugins.Embeddings, `"input":[` + strings.Repeat("1,", 5000) + `1]`, 1000},
		{plugins.Embeddings, `"input":[[` + strings.Repeat("1,", 5000) + `1],[1],[2]]`, 3000},
		{plugins.Completions, `"prompt":"` + long + `"`, 1000},
		{plugins.Completions, `"prompt":["` + long + `","` + long + `"]`, 2000},
		{plugins.Completions, `"prompt":[[` + strings.Repeat("1,", 5000) + `1],[1]]`, 2000},
		{plugins.Responses, `"input":["` + long + `","` + long + `"]`, 1000},
	} {
		body := fmt.Sprintf(`{"model":"m",%s}`, c.fields)
		d := Of(c.dialect, objectOf(body), nil)
		if got := d.Usage(m, UpperBound, int64(len(body)), 1, 1).Input.N; got != c.want {
			t.Errorf("%s %.60s: %d tokens, want %d", c.dialect, c.fields, got, c.want)
		}
	}
}

// What is sent as a picture and is something else has no bound. Google reads a video by its type,
// and fetches one.
func TestWhatPassesForAPictureIsRead(t *testing.T) {
	m, google := &catalog.Model{}, &catalog.Model{}
	m.Context, google.Context, google.Provider = 1_000_000, 1_000_000, "gemini"
	for _, c := range []struct {
		part                string
		unbounded, atGoogle bool
	}{
		{`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`, false, false},
		{`{"type":"image_url","image_url":{"url":"data:video/mp4;base64,AAAA"}}`, true, true},
		{`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","url":"data:video/mp4;base64,AAAA"}}`, true, true},
		{`{"type":"input_image","image_url":"data:application/pdf;base64,AAAA"}`, true, true},
		{`{"type":"input_image","image_url":"data:text/plain;base64,AAAA"}`, true, true},
		{`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`, false, false},
		{`{"type":"image","source":{"type":"base64","media_type":"video/mp4","data":"AAAA"}}`, true, true},
		{`{"type":"image","source":{"type":"base64","media_type":"image/png","media_type":"video/mp4","data":"AAAA"}}`, true, true},
		{`{"type":"image_url","image_url":{"url":"https://www.youtube.com/watch?v=a"}}`, false, true},
		{`{"type":"image","source":{"type":"url","url":"https://example.com/a.mp4"}}`, false, true},
		{`{"type":"document","source":{"type":"text","data":"a"}}`, false, false},
		{`{"type":"document","source":{"type":"text","type":"url","data":"a","url":"https://example.com/a.pdf"}}`, true, true},
		{`{"type":"document","source":{"type":"text","data":"a"},"source":{"type":"url","url":"https://example.com/a.pdf"}}`, true, true},
		{`{"type":"\u0069\u0074\u0065\u006d\u005f\u0072\u0065\u0066\u0065\u0072\u0065\u006e\u0063\u0065"}`, true, true},
	} {
		body := `{"model":"m","messages":[{"role":"user","content":[` + c.part + `]}]}`
		d := Of(plugins.Messages, objectOf(body), nil)
		for _, at := range []struct {
			m    *catalog.Model
			want bool
		}{{m, c.unbounded}, {google, c.atGoogle}} {
			if got := d.Usage(at.m, UpperBound, int64(len(body)), 1, 1).Input.N == 1_000_000; got != at.want {
				t.Errorf("%s at %q: unbounded is %t, want %t", c.part, at.m.Provider, got, at.want)
			}
		}
	}
}

// Of the times that a cache may live, the dearest counts.
func TestCacheOfAnHour(t *testing.T) {
	for control, want := range map[string]bool{
		`{"type":"ephemeral"}`:                       false,
		`{"type":"ephemeral","ttl":"5m"}`:            false,
		`{"type":"ephemeral","ttl":"1h"}`:            true,
		`{"type":"ephemeral","ttl":"5m","ttl":"1h"}`: true,
	} {
		body := `{"model":"m","system":[{"type":"text","text":"a","cache_control":` + control + `}]}`
		if d := Of(plugins.Messages, objectOf(body), nil); d.writesCache1h != want {
			t.Errorf("%s: an hour is %t, want %t", control, d.writesCache1h, want)
		}
	}
}

// A mark counts wherever it may stand: the model to which the request is translated may write for it.
func TestCacheMarks(t *testing.T) {
	for dialect, places := range map[plugins.Dialect][]string{
		plugins.Messages: {
			`%s`, `"system":[{"type":"text","text":"a",%s}]`, `"tools":[{"name":"f",%s}]`,
			`"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a",%s}]}]}]`,
		},
		plugins.Chat: {
			`"messages":[{"role":"user","content":"a",%s}]`, `"messages":[{"role":"user","content":[{"type":"text","text":"a",%s}]}]`,
			`"tools":[{"type":"function","function":{"name":"f"},%s}]`, `"tools":[{"type":"function","function":{"name":"f",%s}}]`,
		},
		plugins.Responses: {
			`"input":[{"role":"user","content":[{"type":"input_text","text":"a",%s}]}]`, `"input":[{"type":"function_call_output","call_id":"c","output":"a",%s}]`,
			`"tools":[{"type":"function","name":"f",%s}]`, `"tools":[{"type":"custom","name":"f",%s}]`, `"tools":[{"type":"web_search",%s}]`,
			`"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f",%s}]}]`,
			`"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f",%s}]}]`,
		},
		plugins.Converse: {
			`"system":[{"text":"a"},{%s}]`, `"messages":[{"role":"user","content":[{"text":"a"},{%s}]}]`, `"toolConfig":{"tools":[{"toolSpec":{"name":"f"}},{%s}]}`,
		},
	} {
		for _, place := range places {
			for _, name := range cacheMarks {
				for _, ttl := range []string{"5m", "1h"} {
					body := strings.Replace("{"+place+"}", "%s", `"`+name+`":{"ttl":"`+ttl+`"}`, 1)
					if d := Of(dialect, objectOf(body), nil); !d.writesCache || d.writesCache1h != (ttl == "1h") || slices.Contains(d.unknown, name) {
						t.Errorf("%s: writes the cache is %t, for an hour is %t, unknown are %q", body, d.writesCache, d.writesCache1h, d.unknown)
					}
				}
			}
		}
	}
}

// Only a request that says nothing else keeps a model from thinking.
func TestSilent(t *testing.T) {
	m := &catalog.Model{}
	m.Reasoning = true
	for _, c := range []struct {
		dialect plugins.Dialect
		body    string
		want    bool
	}{
		{plugins.Messages, `{}`, false},
		{plugins.Messages, `{"thinking":{"type":"disabled"}}`, false},
		{plugins.Messages, `{"thinking":{"type":"disabled","type":"enabled"}}`, true},
		{plugins.Chat, `{}`, true},
		{plugins.Chat, `{"reasoning_effort":"none"}`, false},
		{plugins.Chat, `{"reasoning_effort":"none","reasoning":{"effort":"high"}}`, true},
		{plugins.Chat, `{"reasoning_effort":"none","reasoning":{"max_tokens":9000}}`, true},
		{plugins.Responses, `{"reasoning":{"effort":"none"}}`, false},
		{plugins.Responses, `{"reasoning":{"effort":"none","effort":"high"}}`, true},
		{plugins.Responses, `{"reasoning":{"summary":"auto"}}`, true},
	} {
		body, _ := plugins.ParseObject([]byte(c.body))
		if got := JSON(c.dialect, body).Silent(m); got != c.want {
			t.Errorf("%s %s: %t, want %t", c.dialect, c.body, got, c.want)
		}
	}
}

func objectOf(text string) *plugins.Object {
	object, _ := plugins.ParseObject([]byte(text))
	return object
}
