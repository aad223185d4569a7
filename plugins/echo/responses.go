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
	request, f := read(x.body)
	if f != nil {
		return f
	}
	p, f := repeated(x.body, request.Model)
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
	x.answer(w, r, plugins.Responses, p, request.Answer())
	return nil
}

// repeated reads the fields that the response repeats. It reads no input: the items that
// read takes need less than those that the gateway takes.
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
