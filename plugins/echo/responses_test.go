package echo

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestResponsesStream(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			all := stream(t, "/v1/responses", s.responses)
			if last := all[len(all)-1]; last.data != "[DONE]" {
				t.Errorf("ends with %v", last)
			}
			final := checkResponsesGrammar(t, all[:len(all)-1])
			if whole := post(t, "/v1/responses", s.responses).Body.String(); timeless(whole) != timeless(final.Raw) {
				t.Errorf("the stream ends in\n%s\nbut without one it is\n%s", final.Raw, whole)
			}
			u := final.Get("usage")
			if u.Get("input_tokens").Int()+u.Get("output_tokens").Int() != u.Get("total_tokens").Int() {
				t.Errorf("usage does not sum up: %s", u.Raw)
			}
		})
	}
}

// checkResponsesGrammar holds events against the order that OpenAI's streams
// keep to, and returns the final response.
func checkResponsesGrammar(t *testing.T, all []event) gjson.Result {
	t.Helper()
	var types []string
	for i, e := range all {
		v := gjson.Parse(e.data)
		if v.Get("type").String() != e.name || v.Get("sequence_number").Int() != int64(i) {
			t.Fatalf("event %d is %q: %s", i, e.name, e.data)
		}
		types = append(types, strings.TrimPrefix(e.name, "response."))
	}
	const (
		summary  = `(reasoning_summary_part.added (reasoning_summary_text.delta )+reasoning_summary_text.done reasoning_summary_part.done )`
		part     = `(content_part.added (output_text.delta )+output_text.done content_part.done )`
		call     = `((function_call_arguments.delta )+function_call_arguments.done )`
		terminal = `(completed|incomplete|failed)`
	)
	grammar := regexp.MustCompile(`^created in_progress (output_item.added (` + summary + `+|` + part + `+|` + call + `)output_item.done )*` + terminal + `$`)
	if line := strings.Join(types, " "); !grammar.MatchString(line) {
		t.Fatalf("not the order of OpenAI's: %s", line)
	}

	created := gjson.Get(all[0].data, "response")
	final := gjson.Get(all[len(all)-1].data, "response")
	if !slices.Equal(keys(created), keys(final)) {
		t.Errorf("keys of the first and the last response:\n%v\n%v", keys(created), keys(final))
	}
	if created.Get("id").Str != final.Get("id").Str {
		t.Errorf("the response changed its id from %s to %s", created.Get("id"), final.Get("id"))
	}
	if got := created.Get("status").Str + created.Get("output").Raw + created.Get("usage").Raw; got != "in_progress[]null" {
		t.Errorf("the response begins as %s", created.Raw)
	}
	if want := "response." + final.Get("status").Str; all[len(all)-1].name != want {
		t.Errorf("the response ends with %s, its status is %s", all[len(all)-1].name, want)
	}
	items := final.Get("output").Array()
	for i, item := range items {
		if item.Get("status").Str == "incomplete" && (i < len(items)-1 || final.Get("status").Str != "incomplete") {
			t.Errorf("item %d is incomplete in %s", i, final.Raw)
		}
	}
	checkItems(t, all, items)
	return final
}

// checkItems holds every item's events against the item as it is in the end.
func checkItems(t *testing.T, all []event, items []gjson.Result) {
	t.Helper()
	open, next := gjson.Result{}, 0
	var text string
	for _, e := range all {
		v := gjson.Parse(e.data)
		if !v.Get("output_index").Exists() {
			continue
		}
		if e.name == "response.output_item.added" {
			if next == len(items) {
				t.Fatalf("more items than the %d at the end", len(items))
			}
			open, text = items[next], ""
			next++
		}
		if got := v.Get("output_index").Int(); got != int64(next-1) {
			t.Errorf("output index %d of item %d: %s", got, next-1, e.data)
		}
		id := v.Get("item_id").Str + v.Get("item.id").Str
		if id != open.Get("id").Str {
			t.Errorf("id %s in an event of %s", id, open.Get("id"))
		}
		content := open.Get("content.0.text").Str + open.Get("summary.0.text").Str + open.Get("arguments").Str
		switch {
		case strings.HasSuffix(e.name, ".delta"):
			if v.Get("delta").Str == "" {
				t.Errorf("an empty delta: %s", e.data)
			}
			text += v.Get("delta").Str
		case e.name == "response.output_item.added":
			if v.Get("item.status").Str != "in_progress" || v.Get("item.content.0").Exists() ||
				v.Get("item.summary.0").Exists() || v.Get("item.arguments").Str != "" {
				t.Errorf("an item that begins as %s", e.data)
			}
		case e.name == "response.output_item.done":
			if v.Get("item").Raw != open.Raw {
				t.Errorf("item %s is in the end %s", v.Get("item").Raw, open.Raw)
			}
		case strings.HasSuffix(e.name, "part.added"):
			if v.Get("part.text").Str != "" {
				t.Errorf("a part that begins as %s", e.data)
			}
		case strings.HasSuffix(e.name, ".done"):
			if got := v.Get("text").Str + v.Get("part.text").Str + v.Get("arguments").Str; got != text || got != content {
				t.Errorf("done with %q after deltas of %q for %q", got, text, content)
			}
		}
	}
	if next != len(items) {
		t.Errorf("%d items streamed, %d in the end", next, len(items))
	}
}

func keys(object gjson.Result) []string {
	var names []string
	object.ForEach(func(key, _ gjson.Result) bool {
		names = append(names, key.Str)
		return true
	})
	return names
}

func TestResponseHasTheKeysOfOpenResponses(t *testing.T) {
	whole := gjson.Parse(post(t, "/v1/responses", `{"input":"hi"}`).Body.String())
	for _, key := range []string{
		"id", "object", "created_at", "completed_at", "status", "incomplete_details", "model", "previous_response_id",
		"instructions", "output", "error", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text", "top_p",
		"presence_penalty", "frequency_penalty", "top_logprobs", "temperature", "reasoning", "usage",
		"max_output_tokens", "max_tool_calls", "store", "background", "service_tier", "metadata", "safety_identifier",
		"prompt_cache_key",
	} {
		if !whole.Get(key).Exists() {
			t.Errorf("no %s in %s", key, whole.Raw)
		}
	}
	for _, number := range []string{"top_p", "presence_penalty", "frequency_penalty", "top_logprobs", "temperature"} {
		if whole.Get(number).Type != gjson.Number {
			t.Errorf("%s is %s, not a number", number, whole.Get(number).Raw)
		}
	}
}

func TestResponsesGoOnFromStoredOnesAlone(t *testing.T) {
	h := server()
	ask := func(body string) gjson.Result {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(body)))
		return gjson.Parse(w.Body.String())
	}
	for _, tt := range []struct{ first, code string }{
		{`{"input":"hi"}`, ""},
		{`{"input":"hi","store":false}`, "previous_response_not_found"},
	} {
		id := ask(tt.first).Get("id").Str
		if got := ask(`{"input":"go on","previous_response_id":"` + id + `"}`).Get("error.code").Str; id == "" || got != tt.code {
			t.Errorf("after %s the code is %q, want %q", tt.first, got, tt.code)
		}
	}
	if e := ask(`{"input":[{"type":"function_call_output","call_id":"c","output":"1"}]}`).Get("error.message").Str; !strings.Contains(e, "call_id c") {
		t.Errorf("an output without a call: the error is %q", e)
	}
}
