package storage

import (
	"cmp"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/plugins"
)

// Kept is content that may be kept: without what the caller omits, without what exceeds a
// limit, and without credentials. A journal takes no other content, and only Keep and the
// methods of Kept fill it. The zero Kept has nothing.
type Kept struct {
	content                     Content
	request, response           keptBody
	omitsRequest, omitsResponse bool
}

// keptBody is what was made of a body.
type keptBody struct {
	given []byte // a stream gives the same bytes for each version of its record
	data  []byte // what is kept of them
	cut   bool
}

// Keep returns what may be kept of the content of r, up to limit bytes of each body.
func Keep(r *Record, c Content, limit int64) *Kept {
	k := new(Kept)
	k.Request(r, c.Request, limit, r.RequestTruncated)
	k.Response(r, c.Response, limit, r.ResponseTruncated)
	k.Inputs(r, c.Inputs)
	k.Media(r, c.Media)
	return k
}

// Omit forbids to keep the request or the response of r, for good: what r says later does
// not matter.
func (k *Kept) Omit(r *Record, request, response bool) {
	if r.RequestOmitted = r.RequestOmitted || request || k.omitsRequest; r.RequestOmitted {
		k.omitsRequest = true
		k.content.Request, k.content.Inputs, k.content.Media = Body{}, nil, false
	}
	if r.ResponseOmitted = r.ResponseOmitted || response || k.omitsResponse; r.ResponseOmitted {
		k.omitsResponse, k.content.Response = true, Body{}
	}
}

// Content returns what is kept. It shares its slices with k.
func (k *Kept) Content(r *Record) *Content {
	k.Omit(r, false, false)
	return &k.content
}

// Request keeps the request of r, up to limit bytes. cut says that b is not the whole
// request. A body without a type has the type that was given before.
func (k *Kept) Request(r *Record, b Body, limit int64, cut bool) {
	if k.Omit(r, false, false); !r.RequestOmitted {
		k.request.keep(b.Data, limit)
		k.content.Request = Body{Type: cmp.Or(b.Type, k.content.Request.Type), Data: k.request.data}
		r.RequestTruncated = cut || k.request.cut
	}
}

// Response keeps the answer of r, as Request does the request.
func (k *Kept) Response(r *Record, b Body, limit int64, cut bool) {
	if k.Omit(r, false, false); !r.ResponseOmitted {
		k.response.keep(b.Data, limit)
		k.content.Response = Body{Type: cmp.Or(b.Type, k.content.Response.Type), Data: k.response.data}
		r.ResponseTruncated = cut || k.response.cut
	}
}

// Inputs keeps the inputs of a prompt template, which go with the request.
func (k *Kept) Inputs(r *Record, inputs map[string]string) {
	if k.Omit(r, false, false); !r.RequestOmitted {
		k.content.Inputs = inputs
	}
}

// Media says whether the request has media parts.
func (k *Kept) Media(r *Record, media bool) {
	k.Omit(r, false, false)
	k.content.Media = media && !r.RequestOmitted
}

// RequestOf keeps for r what is kept of the request of another record of the same caller.
func (k *Kept) RequestOf(r *Record, kept *Kept, of *Record) {
	from := kept.Content(of)
	k.content.Request, k.content.Inputs, k.content.Media = from.Request, from.Inputs, from.Media
	r.RequestTruncated = of.RequestTruncated
	k.Omit(r, of.RequestOmitted, of.ResponseOmitted)
}

func (k *keptBody) keep(data []byte, limit int64) {
	if len(data) == len(k.given) && (len(data) == 0 || &data[0] == &k.given[0]) {
		return
	}
	clean := redact.Body(data)
	*k = keptBody{given: data, data: clean[:min(int64(len(clean)), limit)]}
	k.cut = len(k.data) < len(clean) || clean == nil
}

// Redact takes the credentials out of what clients wrote into the annotation: items and
// metadata of a conversation, and views. A journal calls it for each annotation.
func (a *Annotation) Redact() error {
	var texts []*string
	if c := a.Conversation; c != nil {
		texts = append(texts, &c.Metadata)
		for i := range c.Items {
			texts = append(texts, &c.Items[i])
		}
	}
	if a.View != nil {
		texts = append(texts, &a.View.State)
	}
	for _, text := range texts {
		clean := redact.Body([]byte(*text))
		if clean == nil {
			return plugins.Invalid("", "An item is nested too deeply.")
		}
		*text = string(clean)
	}
	return nil
}
