package llmgateway

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
)

// input is the request of a call: what the client sent, and what is sent in its place.
type input struct {
	dialect    plugins.Dialect // of body
	api        inbound.API     // of the dialect, zero if nothing is translated
	compaction *compaction     // what body asks to compact, nil if it asks for anything else

	body   []byte                 // what the client sent, without its Content-Encoding
	form   *form                  // body, nil unless it is a form
	last   *plugins.Object        // the version of the request that fields were last asked of: body, sent, or a later one
	valid  bool                   // last is a JSON object
	reader *observe.RequestReader // of body, nil before it is read
	sent   []byte                 // body, with the kept items in the places of references to them
	names  *translate.Names       // what the client calls the parts of sent, nil if sent is body

	neutral  *translate.Request // sent, nil before it is parsed
	parseErr error              // why sent cannot be parsed
}

func (in *input) field(name string) gjson.Result {
	if in.form != nil {
		return in.form.field(name)
	}
	return in.object(in.body).Get(name)
}

// fields implements bound.Fields.
type fields struct{ *input }

func (f fields) Get(name string) gjson.Result { return f.field(name) }

func (f fields) Names(do func(name string) bool) {
	if f.form == nil {
		f.object(f.sent).Names(do)
		return
	}
	for _, f := range f.form.fields {
		if !do(f.name) {
			return
		}
	}
}

// object returns a version of the request as an object. It parses the version unless the last
// call had the same version.
func (in *input) object(version []byte) *plugins.Object {
	if in.last == nil || len(version) != len(in.last.Data) || unsafe.SliceData(version) != unsafe.SliceData(in.last.Data) {
		in.last, in.valid = plugins.ParseObject(version)
	}
	return in.last
}

func (in *input) isObject() bool {
	in.object(in.body)
	return in.valid
}

// tokens estimates how many tokens the text of the request has.
func (in *input) tokens(by bound.Scale) int64 {
	n := int64(len(in.sent))
	if in.form != nil {
		n = 0
		for _, f := range in.form.fields {
			n += int64(f.end - f.start)
		}
	}
	return by.Text(n)
}

// tier is the service tier that was asked for.
func (in *input) tier() string { return in.field("service_tier").Str }

// pictures returns how many pictures the request sends or links.
func (in *input) pictures() int64 {
	if in.form != nil {
		return int64(len(in.form.files))
	}
	return bound.Of(in.dialect, in.object(in.sent), nil).Pictures
}

// streams reports whether a stream was asked for.
func (in *input) streams() bool {
	return in.dialect == plugins.Realtime || in.field("stream").Type == gjson.True
}

// boundRequest is what is read of the request to bound its cost.
func (in *input) boundRequest() bound.Request {
	return bound.Request{Dialect: in.dialect, Fields: fields{in}, Form: in.form != nil}
}

// earlier returns the field that names what the request continues, and the id in the field. field
// is "" if there is none.
func (in *input) earlier() (field, id string) {
	if bytes.Contains(in.body, []byte(`"previous_response_id"`)) {
		if id = gjson.Get(plugins.View(in.body), "previous_response_id").Str; id != "" {
			return "previous_response_id", strings.Clone(id)
		}
	}
	if bytes.Contains(in.body, []byte(`"conversation"`)) {
		if id = history.ConversationOf(in.body); history.IsConversation(id) {
			return "conversation", strings.Clone(id)
		}
	}
	return "", ""
}

// parse reads the request to translate it.
func (in *input) parse() (*translate.Request, error) {
	parse := in.api.Parse
	switch {
	case in.compaction != nil:
		parse = parseCompaction
	case in.dialect == plugins.InputTokens:
		parse = translate.ParseRequest
	case in.dialect == plugins.CountTokens:
		parse = inbound.ParseCount
	}
	parsed, err := parse(in.sent)
	if err != nil {
		return nil, in.names.Error(err)
	}
	if in.names != nil {
		parsed.Names = in.names
	}
	return parsed, nil
}
