package recording

import (
	"cmp"

	"github.com/weirhq/weir/modules/internal/redact"
	"github.com/weirhq/weir/storage"
)

// Kept is what is kept of the bodies of a call. Its methods alone fill it, and leave out
// what must not be kept: a side that the caller omits, what is longer than the limit, and
// credentials. The zero Kept has nothing.
type Kept struct {
	content           storage.Content
	request, response keptBody
}

// keptBody is what was made of a body.
type keptBody struct {
	given []byte // a stream gives the same bytes for each version of its record
	data  []byte // what is kept of them
	cut   bool
}

// Request keeps the request of r, up to limit bytes. cut says that b is not the whole
// request. A body without a type has the type that was given before.
func (k *Kept) Request(r *storage.Record, b storage.Body, limit int64, cut bool) {
	if !r.RequestOmitted {
		k.request.keep(b.Data, limit)
		k.content.Request = storage.Body{Type: cmp.Or(b.Type, k.content.Request.Type), Data: k.request.data}
		r.RequestTruncated = cut || k.request.cut
	}
}

// Response keeps the answer of r, as Request does the request.
func (k *Kept) Response(r *storage.Record, b storage.Body, limit int64, cut bool) {
	if !r.ResponseOmitted {
		k.response.keep(b.Data, limit)
		k.content.Response = storage.Body{Type: cmp.Or(b.Type, k.content.Response.Type), Data: k.response.data}
		r.ResponseTruncated = cut || k.response.cut
	}
}

// Inputs keeps the inputs of a prompt template, which go with the request.
func (k *Kept) Inputs(r *storage.Record, inputs map[string]string) {
	if !r.RequestOmitted {
		k.content.Inputs = inputs
	}
}

// Media says whether the request has media parts.
func (k *Kept) Media(r *storage.Record, media bool) {
	k.content.Media = media && !r.RequestOmitted
}

// RequestOf keeps what another exchange of the same client keeps of its request.
func (x *Exchange) RequestOf(other *Exchange) {
	k, from := &x.Kept.content, &other.Kept.content
	k.Request, k.Inputs, k.Media = from.Request, from.Inputs, from.Media
	x.Record.RequestTruncated = other.Record.RequestTruncated
}

// Content returns what is kept.
func (k *Kept) Content() storage.Content { return k.content }

func (k *keptBody) keep(data []byte, limit int64) {
	if len(data) == len(k.given) && (len(data) == 0 || &data[0] == &k.given[0]) {
		return
	}
	clean := redact.Body(data)
	*k = keptBody{given: data, data: clean[:min(int64(len(clean)), limit)]}
	k.cut = len(k.data) < len(clean) || clean == nil
}
