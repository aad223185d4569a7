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

// serveResponses answers like OpenAI's Responses, and refuses a previous response that it does not
// have. It stores only ids: the answer does not depend on earlier turns.
func serveResponses(w http.ResponseWriter, r *http.Request, x *exchange) *plugins.Error {
	previous := x.body.Get("previous_response_id").String()
	if previous != "" && !x.stored.has(previous) {
		f := plugins.Invalid("previous_response_id", "Previous response with id %q not found.", previous)
		f.Code = "previous_response_not_found"
		return f
	}
	request, f := readRequest(x.body)
	if f != nil {
		return f
	}
	p, f := repeatedFields(x.body, request.Model)
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

// repeatedFields reads the fields that the response repeats, without the input: read accepts items
// that translate.ParseRequest refuses.
func repeatedFields(body gjson.Result, model string) (*translate.Request, *plugins.Error) {
	raw, _ := sjson.Set(body.Raw, "input", "") // of an object, like the next
	raw, _ = sjson.Set(raw, "model", model)
	p, err := translate.ParseRequest([]byte(raw))
	if f, ok := errors.AsType[*plugins.Error](err); ok {
		return nil, f
	}
	return p, nil
}

// storedIDs has the ids of the last 1,024 stored responses.
type storedIDs struct {
	mu  sync.Mutex // guards all fields
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
