package acme

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
)

// answer is what Acme says: an object has all of it, each event of a stream a
// piece, and an error its field alone.
type answer struct {
	ID      string   `json:"id"`
	Model   string   `json:"model"`
	Text    string   `json:"text"`
	Calls   []call   `json:"calls"`
	Stopped string   `json:"stopped"`
	Tokens  *tokens  `json:"tokens"`
	Error   *failure `json:"error"`
}

type tokens struct {
	In     int64 `json:"in"`
	Cached int64 `json:"cached"` // of In
	Out    int64 `json:"out"`
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Decode implements translate.Provider.
func (Provider) Decode(resp *http.Response, a *translate.Assembler) error {
	switch object, err := translate.ReadObject(resp, a.Request()); {
	case err != nil:
		return err
	case object != nil:
		read(object, a)
		return nil
	}
	for e, err := range observe.SSE(resp.Body) {
		if err != nil {
			return err
		}
		if ended := read(e.Data, a); ended {
			return nil
		}
	}
	return nil
}

// The Assembler's keys. A call's is the first one and its index.
const (
	textKey = iota
	firstCallKey
)

// reasons are why a model stops.
var reasons = map[string]translate.Reason{
	"done":    translate.ReasonStop,
	"limit":   translate.ReasonMaxOutputTokens,
	"blocked": translate.ReasonContentFilter,
}

// read tells a what an object or event says, and reports whether it is the last.
func read(data []byte, a *translate.Assembler) (ended bool) {
	var said answer
	if err := json.Unmarshal(data, &said); err != nil {
		a.Fail(plugins.Upstream("The provider's answer cannot be read: %v.", err))
		return true
	}
	a.Start(said.Model, said.ID)
	a.Text(textKey, said.Text)
	for _, c := range said.Calls {
		a.Call(firstCallKey+c.Index, c.ID, c.Tool)
		a.Args(firstCallKey+c.Index, c.Input)
	}
	if t := said.Tokens; t != nil {
		a.Usage(plugins.Usage{Input: plugins.Known(t.In), CacheRead: plugins.Known(t.Cached), Output: plugins.Known(t.Out)})
	}
	if said.Error != nil {
		a.Fail(newError(http.StatusInternalServerError, said.Error))
		return true
	}
	if said.Stopped == "" {
		return false
	}
	reason, known := reasons[said.Stopped]
	if !known { // a new one, which is no reason to fail
		reason = translate.ReasonStop
	}
	a.Finish(reason)
	return true
}

// maxError is how much of an error's body is read.
const maxError = 1 << 20

// Error implements translate.Provider.
func (Provider) Error(resp *http.Response) *plugins.Error {
	var said answer
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxError)).Decode(&said) // of a proxy's page, the status tells
	e := newError(resp.StatusCode, said.Error)
	e.RetryAfter = plugins.RetryAfter(resp.Header)
	return e
}

// newError is a failure in OpenAI's terms; f is nil where Acme did not explain.
func newError(status int, f *failure) *plugins.Error {
	if f == nil {
		return plugins.Refused(status, "")
	}
	e := plugins.Refused(status, f.Message)
	if f.Code == "too_long" {
		e.Code = "context_length_exceeded"
	}
	return e
}
