package storage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"mime"
	"net/http"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/streams"
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
	given  []byte // a stream gives the same bytes for each version of its record
	data   []byte // what is kept of them
	cut    bool
	masked maskedBody
}

// maskedBody is what a Masker made of a body.
type maskedBody struct {
	by          *mask.Masker
	given, body Body
	cut         bool // what was given is not whole
	lost        bool // it cannot be read whole, so that nothing of it is stored
	counts      mask.Counts
}

// masked is part of what is stored with content.
type masked struct{ by mask.Content }

// MaskContent says what is masked in the content, besides what is masked of the organisation. It
// is not stored.
func (m *masked) MaskContent(by mask.Content) { m.by = by }

// ContentMask returns what MaskContent has said.
func (m *masked) ContentMask() mask.Content { return m.by }

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
		k.request.keep(b.Data, limit, redact.Body)
		k.content.Request = Body{Type: cmp.Or(b.Type, k.content.Request.Type), Data: k.request.data}
		r.RequestTruncated = cut || k.request.cut
	}
}

// Response keeps the answer of r, as Request does the request. An error is kept without the keys that
// it quotes.
func (k *Kept) Response(r *Record, b Body, limit int64, cut bool) {
	if k.Omit(r, false, false); !r.ResponseOmitted {
		clean := redact.Body
		if r.Status.N >= http.StatusBadRequest {
			clean = redact.Error
		}
		k.response.keep(b.Data, limit, clean)
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

func (k *keptBody) keep(data []byte, limit int64, redacted func([]byte) []byte) {
	if sameBytes(data, k.given) {
		return
	}
	clean := redacted(data)
	*k = keptBody{given: data, data: clean[:min(int64(len(clean)), limit)]}
	k.cut = len(k.data) < len(clean) || clean == nil
}

// sameBytes reports whether two slices are one.
func sameBytes(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// Masked returns what may be stored or exported of a record and its content: themselves if m is
// nil, else copies in which m has masked every text that people write. A nil k has no content.
func (k *Kept) Masked(r *Record, m *mask.Masker) (*Record, *Content) {
	var c *Content
	if k != nil {
		c = k.Content(r)
	}
	if m == nil {
		return r, c
	}
	counts := make(mask.Counts)
	masked := *r
	if c != nil {
		content := *c
		asItCame := func(b Body) Body { return b }
		content.Request, masked.RequestTruncated = k.request.mask(m, c.Request, r.RequestTruncated, asItCame, counts)
		content.Response, masked.ResponseTruncated = k.response.mask(m, c.Response, r.ResponseTruncated, func(answer Body) Body {
			stored := answer
			stored.Data, stored.Type = observe.Transcript(r.Dialect).Stored(answer.Type, answer.Data)
			if isStream(r, answer, stored) { // a value may be split over events, where no detector finds it
				stored.Data = nil
			}
			return stored
		}, counts)
		content.Inputs = maskNames(m, c.Inputs, m.Text, counts)
		c = &content
	}
	for _, name := range []*string{
		&masked.UserID, &masked.SessionID, &masked.SessionName, &masked.SessionPath, &masked.PromptID, &masked.PromptVersion,
		&masked.NodeID, &masked.JobID, &masked.ExperimentID, &masked.Provider, &masked.ResponseID, &masked.CountryCode,
		&masked.RequestModel, &masked.ResponseModel, &masked.ModelOverride, &masked.Model,
	} {
		*name = m.Name(*name, counts)
	}
	for _, text := range []*string{
		&masked.Referrer, &masked.Path, &masked.TargetURL, &masked.ErrorType, &masked.ErrorMessage, &masked.Finish,
		&masked.ServiceTier, &masked.InferenceGeo, &masked.WouldRefuse, &masked.CacheMiss, &masked.CacheMissAt,
	} {
		*text = m.Text(*text, counts)
	}
	for _, object := range []*JSONText{&masked.RateLimits, &masked.Batch} {
		*object = JSONText(m.Body([]byte(*object), counts))
	}
	masked.Properties = maskNames(m, r.Properties, m.Name, counts)
	masked.Scores = maskNames(m, r.Scores, asItIs, counts)
	if len(counts) > 0 {
		if before := make(mask.Counts); json.Unmarshal([]byte(r.Masked), &before) == nil { // it was masked where it comes from
			counts.Add(before)
		}
		masked.Masked = JSONText(counts.Text())
	}
	return &masked, c
}

// isStream reports whether what is stored of an answer is still a stream, which nothing put
// together.
func isStream(r *Record, answer, stored Body) bool {
	mediaType, _, _ := mime.ParseMediaType(stored.Type)
	kind, _ := streams.KindOf(stored.Data)
	asItCame := len(stored.Data) > 0 && &stored.Data[0] == &answer.Data[0]
	return mediaType == "text/event-stream" || mediaType == streams.FramesType || kind == streams.Events || kind == streams.Binary ||
		r.Stream && asItCame && (mediaType != "application/json" || bytes.HasPrefix(bytes.TrimSpace(stored.Data), []byte("[")))
}

// maskNames returns what callers have named, with names and values that are masked.
func maskNames[V any](m *mask.Masker, values map[string]V, value func(V, mask.Counts) V, counts mask.Counts) map[string]V {
	if m == nil || values == nil {
		return values
	}
	masked := make(map[string]V, len(values))
	for name, v := range values {
		masked[m.Name(name, counts)] = value(v, counts)
	}
	return masked
}

func asItIs(score float64, _ mask.Counts) float64 { return score }

func maskedNames(m *mask.Masker, names []string) []string {
	if m == nil {
		return names
	}
	masked := make([]string, len(names))
	for i, name := range names {
		masked[i] = m.Name(name, nil)
	}
	return masked
}

// cutTail is how much goes from the end of a body that was cut: a part of a value is no match.
const cutTail = 512

// mask returns what is stored of a body without what m masks, and whether that is not all of it.
// The same bytes are masked once.
func (k *keptBody) mask(m *mask.Masker, b Body, cut bool, stored func(Body) Body, counts mask.Counts) (Body, bool) {
	if last := &k.masked; last.by != m || last.cut != cut || last.given.Type != b.Type || !sameBytes(last.given.Data, b.Data) {
		body, found := stored(b), make(mask.Counts)
		lost := b.Data != nil && body.Data == nil
		if cut {
			body.Data = body.Data[:max(0, len(body.Data)-cutTail)]
		}
		body.Data = m.Body(body.Data, found)
		*last = maskedBody{m, b, body, cut, lost, found}
	}
	counts.Add(k.masked.counts)
	return k.masked.body, cut || k.masked.lost
}

// Redact takes the credentials out of what clients wrote into the annotation, and what m masks.
// A journal calls it for each annotation.
func (a *Annotation) Redact(m *mask.Masker) error {
	a.SessionID = m.Name(a.SessionID, nil)
	a.Scores = maskNames(m, a.Scores, asItIs, nil)
	a.Removed = maskedNames(m, a.Removed)
	if p := a.Property; p != nil {
		a.Property = &Property{Name: m.Name(p.Name, nil), Value: m.Name(p.Value, nil)}
	}
	if a.Tag != nil {
		a.Tag = new(m.Name(*a.Tag, nil))
	}
	var texts []*string
	if c := a.Conversation; c != nil {
		c.User, c.Remove, c.Add = m.Name(c.User, nil), m.Name(c.Remove, nil), maskedNames(m, c.Add)
		texts = append(texts, &c.Metadata)
		for i := range c.Items {
			texts = append(texts, &c.Items[i])
		}
	}
	if v := a.View; v != nil {
		v.Name, v.Screen = m.Name(v.Name, nil), m.Name(v.Screen, nil)
		texts = append(texts, &v.State)
	}
	for _, text := range texts {
		clean := redact.Body([]byte(*text))
		if clean == nil {
			return plugins.Invalid("", "An item is nested too deeply.")
		}
		*text = string(m.Body(clean, nil))
	}
	return nil
}
