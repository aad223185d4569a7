package echo

import (
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// serveResponses refuses a previous response that is not stored, as OpenAI does. What
// was said before does not change the answer, so that ids suffice.
func serveResponses(w http.ResponseWriter, r *http.Request, x *exchange) *plugins.Error {
	previous := x.body.Get("previous_response_id").String()
	if previous != "" && !x.stored.has(previous) {
		f := plugins.Invalid("previous_response_id", "Previous response with id %q not found.", previous)
		f.Code = "previous_response_not_found"
		return f
	}
	asked, f := parseResponses(x.body)
	if f != nil {
		return f
	}
	p, f := repeated(x.body, asked.Model)
	if f != nil {
		return f
	}
	p.State = translate.State{
		Stored:             x.body.Get("store").Type != gjson.False,
		Background:         x.body.Get("background").Bool(),
		PreviousResponseID: previous,
	}
	if p.State.Stored {
		x.stored.add(x.id("resp_"))
	}
	x.answer(w, r, plugins.Responses, p, asked.Answer())
	return nil
}

// repeated reads the fields that the response repeats. It reads no input: the items that
// parseResponses takes need less than those that the gateway takes.
func repeated(body gjson.Result, model string) (*translate.Request, *plugins.Error) {
	raw, _ := sjson.Set(body.Raw, "input", "") // of an object, like the next
	raw, _ = sjson.Set(raw, "model", model)
	p, err := translate.ParseRequest([]byte(raw))
	if f, ok := errors.AsType[*plugins.Error](err); ok {
		return nil, f
	}
	return p, nil
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

func parseResponses(body gjson.Result) (Request, *plugins.Error) {
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
					return r, plugins.Invalid("input", "No tool call found for function call output with call_id %s.", id)
				}
			}
			r.inputItem(item)
		}
	default:
		return r, plugins.Invalid("input", "input must be a string or an array of items")
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
