package echo

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/gjson"
)

// responses is OpenAI's Responses, with every key that Open Responses requires.
var responses = dialect{parse: parseResponses, object: responseObject, stream: streamResponse}

// serveResponses refuses to go on from a response that it has not stored, as OpenAI
// does. What was said before does not change the answer, so that ids suffice.
func serveResponses(w http.ResponseWriter, r *http.Request, x *exchange) *failure {
	if id := x.body.Get("previous_response_id").String(); id != "" && !x.stored.has(id) {
		f := invalid("previous_response_id", "Previous response with id %q not found.", id)
		f.code = "previous_response_not_found"
		return f
	}
	if x.body.Get("store").Type != gjson.False {
		x.stored.add(x.id("resp_"))
	}
	return responses.serve(w, r, x)
}

// storedIDs are the ids of the latest responses that may be continued.
type storedIDs struct {
	mu  sync.Mutex
	ids [1024]string
	n   int // added so far
}

func (s *storedIDs) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.ids[:], id)
}

func (s *storedIDs) add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[s.n%len(s.ids)] = id
	s.n++
}

func parseResponses(body gjson.Result) (Request, *failure) {
	r := newRequest(body)
	r.count(body.Get("instructions"))
	input := body.Get("input")
	switch {
	case input.Type == gjson.String:
		r.user(input.Str, 0)
	case input.IsArray():
		called := map[string]bool{}
		for item := range objects(input) {
			id := item.Get("call_id").String()
			switch item.Get("type").String() {
			case "function_call":
				called[id] = true
			case "function_call_output":
				if !called[id] && !body.Get("previous_response_id").Exists() {
					return r, invalid("input", "No tool call found for function call output with call_id %s.", id)
				}
			}
			r.inputItem(item)
		}
	default:
		return r, invalid("input", "input must be a string or an array of items")
	}

	for t := range objects(body.Get("tools")) {
		if t.Get("type").String() == "function" {
			r.offer(t, "parameters")
		}
	}
	r.SingleCall = body.Get("parallel_tool_calls").Type == gjson.False
	r.hold(body.Get("text.format"), "schema")
	r.Reasoning = asksForReasoning(body, "reasoning")
	if f := r.choose(responsesChoice(body.Get("tool_choice"))); f != nil {
		return r, f
	}
	return r, r.limit(body, "max_output_tokens")
}

func (r *Request) inputItem(item gjson.Result) {
	content := item.Get("content")
	switch item.Get("type").String() {
	case "message", "": // the type of a message may be left out
		switch item.Get("role").String() {
		case "user":
			r.user(contentOf(content))
		case "assistant":
			r.assistant(content)
		default:
			r.count(content)
		}
	case "function_call":
		r.assistant(item.Get("arguments"))
	case "function_call_output":
		r.toolResult(item.Get("output"))
	}
}

func responsesChoice(v gjson.Result) choice {
	if !v.IsObject() {
		return choice{mode: v.String()}
	}
	switch v.Get("type").String() {
	case "function":
		return choice{"required", []string{v.Get("name").String()}}
	case "allowed_tools":
		c := choice{mode: v.Get("mode").String()}
		for t := range objects(v.Get("tools")) {
			c.names = append(c.names, t.Get("name").String())
		}
		return c
	}
	return choice{} // a hosted tool, of which there is none
}

// repeated are the fields of a request that its response repeats, with OpenAI's
// defaults.
var repeated = []struct{ name, absent string }{
	{"background", "false"},
	{"frequency_penalty", "0.0"},
	{"instructions", "null"},
	{"max_output_tokens", "null"},
	{"max_tool_calls", "null"},
	{"metadata", "{}"},
	{"parallel_tool_calls", "true"},
	{"presence_penalty", "0.0"},
	{"previous_response_id", "null"},
	{"prompt_cache_key", "null"},
	{"prompt_cache_retention", "null"},
	{"safety_identifier", "null"},
	{"store", "true"},
	{"temperature", "1.0"},
	{"tool_choice", `"auto"`},
	{"top_logprobs", "0"},
	{"top_p", "1.0"},
	{"truncation", `"disabled"`},
	{"user", "null"},
}

const noToolUsage = `{"image_gen":{"input_tokens":0,"input_tokens_details":{"image_tokens":0,"text_tokens":0},` +
	`"output_tokens":0,"output_tokens_details":{"image_tokens":0,"text_tokens":0},"total_tokens":0},` +
	`"web_search":{"num_requests":0}}`

// response renders the object of the whole answer and of every lifecycle event;
// its keys are the same from the first to the last.
func (x *exchange) response(r Request, status string, output list, usage json.RawMessage) json.RawMessage {
	completedAt, incomplete := json.RawMessage("null"), json.RawMessage("null")
	switch status {
	case "completed":
		completedAt = render("%d", time.Now().Unix())
	case "incomplete":
		incomplete = json.RawMessage(`{"reason":"max_output_tokens"}`)
	}
	b := render(`{"id":%s,"object":"response","created_at":%d,"status":%s,"completed_at":%s,"error":null,"incomplete_details":%s,`+
		`"model":%s,"output":%s,"usage":%s,"tools":%s,"service_tier":"default","access_programs":null,"moderation":null,"tool_usage":`+noToolUsage,
		x.id("resp_"), x.created.Unix(), status, completedAt, incomplete, r.Model, output, usage, responseTools(x.body))
	for _, f := range repeated {
		b = append(b, render(`,%s:%s`, f.name, raw(x.body, f.name, f.absent))...)
	}
	return append(b, render(`,"reasoning":{"effort":%s,"summary":%s},"text":{"format":%s,"verbosity":%s}}`,
		raw(x.body, "reasoning.effort", "null"), raw(x.body, "reasoning.summary", "null"),
		raw(x.body, "text.format", `{"type":"text"}`), raw(x.body, "text.verbosity", `"medium"`))...)
}

// responseTools are the tools of the request, functions with the keys that Open
// Responses requires.
func responseTools(body gjson.Result) (tools list) {
	for t := range objects(body.Get("tools")) {
		if t.Get("type").String() != "function" {
			tools = append(tools, json.RawMessage(t.Raw))
			continue
		}
		tools = append(tools, render(`{"type":"function","name":%s,"description":%s,"parameters":%s,"strict":%s}`,
			t.Get("name").String(), raw(t, "description", "null"), raw(t, "parameters", "null"), raw(t, "strict", "true")))
	}
	return tools
}

// finalResponse renders the response that ends the exchange.
func (x *exchange) finalResponse(r Request, a Answer, items []outputItem) (status string, response json.RawMessage) {
	output := make(list, len(items))
	for i, item := range items {
		output[i] = item.whole
	}
	status = "completed"
	if a.Finish == FinishLength {
		status = "incomplete"
	}
	return status, x.response(r, status, output, render(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},`+
		`"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		a.Usage.Input.N, a.Usage.Output.N, a.Usage.Reasoning.N, a.Usage.Total().N))
}

func responseObject(x *exchange, r Request, a Answer) json.RawMessage {
	_, response := x.finalResponse(r, a, outputItems(x, a))
	return response
}

// sealed returns reasoning in a form like the encrypted one that only its vendor
// can read.
func sealed(reasoning string) string {
	return base64.StdEncoding.EncodeToString([]byte(reasoning))
}
