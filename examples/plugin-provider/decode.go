package acme

import (
	"encoding/json"
	"net/http"

	"github.com/tidwall/gjson"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// answer is what Acme says. An object has the whole answer, each event of a stream a
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

// Decode implements translate.Provider. What Acme says is alike in an object and
// in the events of a stream.
func (Provider) Decode(resp *http.Response, a *translate.Assembler) error {
	return translate.ReadAnswer(resp, a,
		func(object []byte) { read(object, a) },
		func(_, event []byte) bool { return !read(event, a) })
}

// The Assembler's keys. A call's is the first one and its index.
const (
	textKey = iota
	firstCallKey
)

// reasons are why a model stops.
var reasons = translate.Reasons{
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
	a.Finish(reasons.Of(said.Stopped))
	return true
}

// Error implements translate.Provider.
func (Provider) Error(resp *http.Response) *plugins.Error {
	return translate.ReadError(resp, func(status int, body gjson.Result) *plugins.Error {
		return newError(status, &failure{body.Get("error.code").Str, body.Get("error.message").Str})
	})
}

// newError is a failure in OpenAI's terms. Where Acme did not explain it, the
// status does.
func newError(status int, f *failure) *plugins.Error {
	e := plugins.Refused(status, f.Message)
	if f.Code == "too_long" {
		e.Code = "context_length_exceeded"
	}
	return e
}
