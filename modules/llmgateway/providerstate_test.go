package llmgateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/shared"
)

// An organisation with its own key beside one of the platform has one account that
// keeps its responses: its own.
func TestOwnAccountKeepsResponses(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {speaksResponses}, "one": {hello}})
	for field, value := range map[string]string{
		"previous_response_id": `"resp_1"`, "conversation": `"conv_1"`, "prompt": `{"id":"pmpt_1"}`,
	} {
		resp, body := s.post(`{"model":"raw/m","input":"hi","`+field+`":`+value+`}`, "Authorization", "Bearer both")
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", field, resp.StatusCode, body)
		}
	}
}

// What an account keeps that organisations share reaches those alone who were given
// it; and an answer that nobody can charge is refused.
func TestStoredIDsAreBoundToTheirOrganisation(t *testing.T) {
	const given = `{"id":"resp_given","object":"response","status":"completed","model":"priced","output":[{"id":"msg_given","type":"message"}],"usage":{"input_tokens":1,"output_tokens":1}}`
	for _, streamed := range []bool{false, true} {
		s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
			if streamed {
				says(`{"type":"response.completed","sequence_number":0,"response":`+given+`}`)(w, r)
				return
			}
			_, _ = w.Write([]byte(given))
		}}})
		s.grant(1e6)
		ask := func(fields, key string) (int, string) {
			resp, body := s.post(`{"model":"raw/priced","max_output_tokens":9,`+fields+`}`, "Authorization", "Bearer "+key)
			return resp.StatusCode, gjson.Get(body, "error.param").Str
		}
		const previous, reference = `"input":"hi","previous_response_id":"resp_given"`, `"input":[{"type":"item_reference","id":"msg_given"}]`
		for _, key := range []string{"payer", "payer2"} { // the second knows what the first one was given
			for fields, param := range map[string]string{
				previous:                                "previous_response_id",
				reference:                               "input[0]",
				`"input":"hi","conversation":"conv_1"`:  "conversation",
				`"input":"hi","prompt":{"id":"pmpt_1"}`: "prompt",
				`"input":[{"role":"user","content":[{"type":"input_file","file_id":"file_1"}]}]`:                    "input[0]",
				`"input":"hi","tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]`:                         "tools",
				`"input":"hi","tools":[{"type":"code_interpreter","container":"cntr_1"}]`:                           "tools",
				`"input":"hi","tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["f_1"]}}]`: "tools",
			} {
				if status, got := ask(fields, key); status != http.StatusBadRequest || got != param {
					t.Errorf("%s asks %s: %d at %q", key, fields, status, got)
				}
			}
			if status, _ := ask(`"input":"hi"`, "payer"); status != http.StatusOK {
				t.Fatalf("the first call: %d", status)
			}
		}
		for _, fields := range []string{previous, reference, `"input":"hi","tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`} {
			if status, param := ask(fields, "payer"); status != http.StatusOK {
				t.Errorf("its own %s: %d at %q", fields, status, param)
			}
		}
		s.memory = new(shared.LocalMemory) // as after a restart
		if status, param := ask(previous, "payer"); status != http.StatusOK {
			t.Errorf("an id that was given before a restart: %d at %q", status, param)
		}
		for _, key := range []string{"payer2", "k", "acme"} {
			if status, param := ask(previous, key); status != http.StatusBadRequest || param != "previous_response_id" {
				t.Errorf("%s asks for an id that others were given: %d at %q", key, status, param)
			}
		}
	}
}

// An account of the platform keeps what many organisations gave it, also where no credits
// pay: what was not given to the caller does not pass, however it is spelled. A record that
// the caller reported proves nothing.
func TestPlatformAccountsAreShared(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"id":"resp_own","object":"response","status":"completed","model":"m","output":[{"id":"ci","type":"code_interpreter_call","container_id":"cntr_own"}]}`))
	}}})
	reported := storage.Record{Org: "acme", Dialect: plugins.Responses, ResponseID: "resp_forged", TargetURL: s.handler.site.App.Accounts().Of("default")[2].BaseURL}
	s.kept.records[reported.Key()] = entry{Record: reported}
	ask := func(path, fields string) (int, string) {
		resp, body := s.postTo(path, strings.NewReader(`{"model":"raw/m","max_tokens":9,`+fields+`}`), "Authorization", "Bearer acme")
		return resp.StatusCode, body
	}
	for _, c := range []struct{ path, fields string }{
		{"/v1/responses", `"input":"hi","previous_response_id":"resp_others"`},
		{"/v1/responses", `"input":"hi","previous_response_id":"resp_forged"`},
		{"/v1/responses", `"input":[{"id":"msg_others"}]`},
		{"/v1/responses", `"input":[{"type":"message","type":"item_reference","id":"msg_others"}]`},
		{"/v1/responses", `"input":[{"type":"image_generation_call","id":"ig_others"}]`},
		{"/v1/responses", `"input":[{"role":"user","content":[{"type":"input_file","file_\u0069d":"file-others"}]}]`},
		{"/v1/chat/completions", `"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-others"}}]}]`},
		{"/v1/messages", `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_others"}}]}]`},
		{"/v1/messages", `"messages":[],"container":{"id":"container_others"}`},
		{"/v1/chat/completions", `"messages":[{"role":"assistant","audio":{"id":"audio_others"}}]`},
		{"/v1/messages", `"messages":[],"container":{"skills":[{"type":"custom","skill_id":"skill_others"}]}`},
		{"/v1/messages", `"messages":[],"thread":{"type":"continue","previous_message_id":"msg_others"}`},
		{"/v1/messages", `"messages":[],"diagnostics":{"previous_message_id":"msg_others"}`},
		{"/v1/messages", `"messages":[],"workspace_id":"wrkspc_others"`},
		{"/v1/messages", `"messages":[],"fallback_credit_token":"token_others"`},
		{"/v1/responses", `"input":"hi","prompt_cache_options":{"comparison_response_id":"resp_others"}`},
		{"/v1/responses", `"input":"hi","tools":[{"type":"mcp","server_label":"a","tunnel_id":"tunnel_others"}]`},
		{"/v1/responses", `"input":"hi","memory":{"memory_store_id":"m_others"}`},
		{"/v1/chat/completions", `"messages":[],"tools":[{"type":"document_library","library_ids":["l_others"]}]`},
		{"/v1/chat/completions", `"messages":[],"audio":{"voice":{"id":"voice_others"},"format":"mp3"}`},
		{"/v1/responses", `"input":"hi","tools":[{"type":"shell","environment":{"type":"container_auto","skills":[{"type":"skill_reference","skill_id":"skill_others"}]}}]`},
	} {
		if status, body := ask(c.path, c.fields); status != http.StatusBadRequest || !strings.Contains(body, "is not known to be yours") {
			t.Errorf("%s %s: %d %s", c.path, c.fields, status, body)
		}
	}
	for _, fields := range []string{
		`"input":"hi"`, `"input":"hi","previous_response_id":"resp_own"`, `"input":"hi","tools":[{"type":"code_interpreter","container":"cntr_own"}]`,
		`"input":"hi","tools":[{"type":"function","name":"run","parameters":{"examples":[{"container":"web"}]}}]`,
	} {
		if status, body := ask("/v1/responses", fields); status != http.StatusOK {
			t.Errorf("%s: %d %s", fields, status, body)
		}
	}
}

// A thread of Messages goes on for the organisation that began it.
func TestThreadsAreBoundToTheirOrganisation(t *testing.T) {
	for _, stream := range []string{"false", "true"} {
		s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
			const message = `{"id":"msg_own","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}`
			if stream == "true" {
				says(`{"type":"message_start","message":`+message+`}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`,
					`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`, `{"type":"message_stop"}`)(w, r)
				return
			}
			fmt.Fprint(w, message+`,"stop_reason":"end_turn"}`)
		}}})
		for _, c := range []struct {
			key, thread string
			status      int
		}{
			{"acme", `{"type":"continue","previous_message_id":"msg_own"}`, 400},
			{"acme", `{"type":"create"}`, 200},
			{"acme", `{"type":"continue","previous_message_id":"msg_own"}`, 200},
			{"k", `{"type":"continue","previous_message_id":"msg_own"}`, 400},
		} {
			resp, body := s.postTo("/v1/messages", strings.NewReader(`{"model":"raw/m","max_tokens":9,"stream":`+stream+`,"messages":[{"role":"user","content":"a"}],"thread":`+c.thread+`}`),
				"Authorization", "Bearer "+c.key)
			if resp.StatusCode != c.status {
				t.Errorf("stream %s, %s %s: %d %s", stream, c.key, c.thread, resp.StatusCode, body)
			}
		}
	}
}

// Reasoning that a client sends back by its id alone is left out where it means nothing: a
// translation has no place for it, and another provider has thought it.
func TestReasoningWithoutContentIsLeftOut(t *testing.T) {
	for model, warned := range map[string]bool{"raw/m": true, "one/m": false} {
		var sent string
		answer := hello
		if model == "raw/m" {
			answer = speaksResponses
		}
		s := serve(t, map[string][]upstream{strings.TrimSuffix(model, "/m"): {func(w http.ResponseWriter, r *http.Request) {
			sent = readAndRestore(r)
			answer(w, r)
		}}})
		resp, body := s.post(`{"model":"`+model+`","input":[{"role":"user","content":"a"},{"type":"reasoning","id":"rs_1","summary":[]},
			{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, "Authorization", "Bearer acme")
		warning := resp.Header.Get("Service-Warnings")
		if resp.StatusCode != http.StatusOK || strings.Contains(sent, "rs_1") || strings.Contains(warning, "input[1]: reasoning") != warned {
			t.Errorf("%s: %d %s; sent %s, warnings %q", model, resp.StatusCode, body, sent, warning)
		}
	}
}

// What a model has said aloud is known by an id to the organisation that heard it.
func TestSpokenAnswersAreBoundToTheirOrganisation(t *testing.T) {
	for _, mode := range []string{"false", "true"} {
		s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
			const audio = `"audio":{"id":"audio_1","data":"AA=="}`
			if mode == "true" {
				says(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{`+audio+`},"finish_reason":"stop"}]}`, "[DONE]")(w, r)
				return
			}
			fmt.Fprint(w, `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",`+audio+`},"finish_reason":"stop"}]}`)
		}}})
		for _, c := range []struct {
			key    string
			status int
		}{{"acme", 400}, {"k", 400}, {"", 0}, {"acme", 200}, {"k", 400}} {
			messages := `{"role":"assistant","audio":{"id":"audio_1"}}`
			if c.key == "" {
				c.key, c.status, messages = "acme", 200, `{"role":"user","content":"hi"}`
			}
			resp, body := s.postTo("/v1/chat/completions", strings.NewReader(`{"model":"raw/m","stream":`+mode+`,"messages":[`+messages+`]}`), "Authorization", "Bearer "+c.key)
			if resp.StatusCode != c.status {
				t.Errorf("stream %s, %s: %d %s", mode, c.key, resp.StatusCode, body)
			}
		}
	}
}

// The ids of each answer are remembered by themselves: what names them has as many keys
// as one answer has ids, however many answers an organisation gets.
func TestStoredIDsOfEachAnswerAreOneValue(t *testing.T) {
	answers := 0
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
		answers++
		fmt.Fprintf(w, `{"id":"resp_%d","object":"response","status":"completed","model":"priced","output":[{"id":"msg_%[1]d","type":"message"}],"usage":{"input_tokens":1,"output_tokens":1}}`, answers)
	}}})
	s.grant(1e6)
	values := new(spy)
	s.memory = values
	for range 3 {
		s.post(`{"model":"raw/priced","max_output_tokens":9,"input":"hi"}`, "Authorization", "Bearer payer")
	}
	if len(values.values) != 3 {
		t.Errorf("three answers are %d values", len(values.values))
	}
	for _, keys := range values.values {
		if keys != 2 {
			t.Errorf("a value has %d keys", keys)
		}
	}
}

// A tier that has no price is left out of a call that credits pay for, and the
// client is told; where changes are unwanted, it is refused.
func TestTierWithoutPriceIsLeftOut(t *testing.T) {
	for model, label := range map[string]string{"raw/priced": "raw", "one/m": "one"} {
		var sent string
		answer := hello
		if label == "raw" {
			answer = speaksResponses
		}
		s := serve(t, map[string][]upstream{label: {func(w http.ResponseWriter, r *http.Request) {
			sent = readAndRestore(r)
			answer(w, r)
		}}})
		s.grant(1e6)
		for _, tier := range []string{"flex", "scale", "priority"} {
			body := `{"model":"` + model + `","input":"hi","max_output_tokens":9,"service_tier":"` + tier + `"}`
			resp, got := s.post(body, "Authorization", "Bearer payer")
			if resp.StatusCode != http.StatusOK || strings.Contains(sent, tier) || !strings.HasPrefix(resp.Header.Get("Service-Warnings"), "service_tier: ") {
				t.Errorf("%s, %s: %d %s; sent %s, warnings %q", model, tier, resp.StatusCode, got, sent, resp.Header.Get("Service-Warnings"))
			}
			resp, got = s.post(body, "Authorization", "Bearer payer", "Service-Strict", "true")
			if resp.StatusCode != http.StatusBadRequest || gjson.Get(got, "error.param").Str != "service_tier" {
				t.Errorf("%s, %s, strict: %d %s", model, tier, resp.StatusCode, got)
			}
		}
	}
}

func TestNegativeLimitNamesItsField(t *testing.T) {
	for path, field := range map[string]string{"/v1/responses": "max_output_tokens", "/v1/chat/completions": "max_tokens", "/v1/messages": "max_tokens"} {
		s := serve(t, map[string][]upstream{"raw": {speaksResponses}})
		s.grant(1e6)
		resp, body := s.postTo(path, strings.NewReader(`{"model":"raw/priced","input":"hi","messages":[],"`+field+`":-1}`), "Authorization", "Bearer payer")
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(gjson.Get(body, "error.message").Str, "'"+field+"'") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}
