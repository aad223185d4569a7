package llmgateway

import (
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
)

// input is the request of a call.
type input struct {
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
func (c *call) pictures() int64 {
	if c.input.form != nil {
		return int64(len(c.input.form.files))
	}
	return bound.Of(c.dialect, c.input.object(c.input.sent), nil).Pictures
}
