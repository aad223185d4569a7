package bound

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// Batch is an upper bound on what the calls of a batch use. The record of a batch has it, and the
// record of an uploaded file with calls. The zero Batch is an unknown one.
type Batch struct {
	// Reservation is what budgets and credits set aside for the batch, the zero UUID if nothing.
	Reservation uuid.UUID `json:"reservation,omitzero"`
	// Parts have one entry for each model and endpoint.
	Parts []*BatchPart `json:"parts"`
}

// BatchPart are the calls of one model at one endpoint. All counts but Calls are tokens.
type BatchPart struct {
	Model string `json:"model"`
	// Endpoint is the URL in the lines of the file, "" for calls in the request itself.
	Endpoint string `json:"endpoint,omitempty"`
	Calls    int64  `json:"calls"`
	// Tools are the models that the tools of the calls use.
	Tools []string `json:"tools,omitempty"`
	// Longest is the longest input of a call.
	Longest int64 `json:"longest"`

	Input        int64 `json:"input"`
	InputAudio   int64 `json:"input_audio,omitempty"`
	InputImage   int64 `json:"input_image,omitempty"`
	CacheWrite   int64 `json:"cache_write,omitempty"`
	CacheWrite1h int64 `json:"cache_write_1h,omitempty"`
	Output       int64 `json:"output"`
	WebSearches  int64 `json:"web_searches,omitempty"`
}

// maxBatchParts bounds how many models and endpoints a batch has.
const maxBatchParts = 20

// ParseBatch parses the batch in a record. An unreadable one is unknown.
func ParseBatch(text storage.JSONText) (b Batch) {
	if json.Unmarshal([]byte(text), &b) != nil {
		return Batch{}
	}
	return b
}

// Text is the form of the batch in a record, "" if it is unknown.
func (b Batch) Text() storage.JSONText {
	if b.Parts == nil {
		return ""
	}
	text, _ := json.Marshal(b) // strings and numbers, which cannot fail
	return storage.JSONText(text)
}

// Calls is how many calls the batch has.
func (b Batch) Calls() (n int64) {
	for _, part := range b.Parts {
		n += part.Calls
	}
	return n
}

// Models returns the models of the batch, each once.
func (b Batch) Models() (names []string) {
	for _, part := range b.Parts {
		if !slices.Contains(names, part.Model) {
			names = append(names, part.Model)
		}
	}
	return names
}

// AllModels returns the models of the batch, and those of the tools of its calls.
func (b Batch) AllModels() []string {
	names := b.Models()
	for _, part := range b.Parts {
		names = append(names, part.Tools...)
	}
	return names
}

// CreatedBy returns b, the batch of an uploaded file, if a request creates a batch of one file, and
// all calls of the file are at the endpoint of the request. Else the batch is unknown.
func (b Batch) CreatedBy(request *plugins.Object) Batch {
	_, hasFile := onlyMember(request, "input_file_id")
	endpoint, hasEndpoint := onlyMember(request, "endpoint")
	if !hasFile || !hasEndpoint || slices.ContainsFunc(b.Parts, func(part *BatchPart) bool { return part.Endpoint != endpoint.Str }) {
		return Batch{}
	}
	return b
}

// MaxUsage returns an upper bound on the usage and the cost of a batch that begins at a time. The
// cost is unknown if a model has no batch price; everything is unknown if the batch is.
func (b Batch) MaxUsage(prices *catalog.Catalog, provider string, at time.Time) (upperBound Used) {
	for i, part := range b.Parts {
		m, ok := prices.Lookup(provider, part.Model)
		if !ok {
			return Used{}
		}
		u := plugins.Usage{
			Input: plugins.Known(part.Input), InputAudio: plugins.Known(part.InputAudio), InputImage: plugins.Known(part.InputImage),
			CacheWrite: plugins.Known(part.CacheWrite), CacheWrite1h: plugins.Known(part.CacheWrite1h),
			Output: plugins.Known(part.Output),
		}
		if part.WebSearches > 0 {
			u.WebSearches = plugins.Known(part.WebSearches)
		}
		cost := m.MaxCost(u, catalog.Conditions{At: at, Tier: plugins.BatchTier, Longest: part.Longest})
		cost.N += plugins.Nanodollars(part.Calls) // each call is rounded by itself
		if i == 0 {
			upperBound = Used{Cost: cost, Usage: u}
			continue
		}
		upperBound.Cost = upperBound.Cost.Both(cost)
		upperBound.Usage.Add(u)
	}
	return upperBound
}

// Cost returns the cost of the usage u of a batch. It is unknown unless the batch has one model. If
// longer inputs have another price, all of u has the dearer of the two.
func (b Batch) Cost(prices *catalog.Catalog, provider string, u plugins.Usage, c catalog.Conditions) (maxCost plugins.Cost) {
	names := b.Models()
	if len(names) != 1 {
		return plugins.Cost{}
	}
	m, ok := prices.Lookup(provider, names[0])
	if !ok {
		return plugins.Cost{}
	}
	c.Tier = plugins.BatchTier
	for _, c.Longest = range []int64{1, b.longest()} {
		if cost := m.Cost(u, c); !maxCost.Valid || cost.N > maxCost.N {
			maxCost = cost
		}
	}
	return maxCost
}

func (b Batch) longest() (n int64) {
	for _, part := range b.Parts {
		n = max(n, part.Longest)
	}
	return n
}

// Adder adds up the calls of a batch at a provider.
type Adder struct {
	Catalog  *catalog.Catalog
	Provider string

	sum []*BatchPart
}

// plainTiers are service tiers that a call of a batch may name.
var plainTiers = []string{"auto", "default", "standard_only"}

// add adds a call. It reports false if there is no upper bound on what the call uses. If model is
// "", the body names the model.
func (a *Adder) add(endpoint string, d plugins.Dialect, model string, body string) bool {
	object, ok := plugins.ParseObject([]byte(body))
	if !ok {
		return false
	}
	r := JSON(d, object)
	if model == "" {
		model = r.Get("model").Str
	}
	m, ok := a.Catalog.Lookup(a.Provider, model)
	if !ok || r.Check() != nil || slices.ContainsFunc(r.Tiers(), func(tier string) bool { return !slices.Contains(plainTiers, tier) }) {
		return false
	}
	reads := Of(d, object, nil)
	u, ok := r.Uses(m, &reads, int64(len(body)), 0)
	if !ok || reads.hosted.painters != nil || reads.hosted.advisors != nil || reads.hosted.cost() > 0 {
		return false
	}
	// With a header, calls of a batch write more than the model's limit
	// (https://platform.claude.com/docs/en/build-with-claude/batch-processing#extended-output-beta).
	if limit, err := r.OutputLimit(); d == plugins.Messages && err == nil {
		u.Output.N += max(limit-m.OutputLimit(), 0)
	}
	part := a.part(model, endpoint)
	return part != nil && part.add(&u, r.ToolModels())
}

// part returns the part of a model at an endpoint, nil if it would be one too many.
func (a *Adder) part(model, endpoint string) *BatchPart {
	for _, part := range a.sum {
		if part.Model == model && part.Endpoint == endpoint {
			return part
		}
	}
	if len(a.sum) == maxBatchParts {
		return nil
	}
	part := &BatchPart{Model: strings.Clone(model), Endpoint: strings.Clone(endpoint)}
	a.sum = append(a.sum, part)
	return part
}

// add adds a call, and reports false if the calls have too many models of tools.
func (p *BatchPart) add(u *plugins.Usage, tools []string) bool {
	for _, name := range tools {
		if slices.Contains(p.Tools, name) {
			continue
		}
		if len(p.Tools) == maxBatchParts {
			return false
		}
		p.Tools = append(p.Tools, strings.Clone(name))
	}
	p.Calls++
	p.Longest = max(p.Longest, u.Input.N)
	p.Input += u.Input.N
	p.InputAudio += u.InputAudio.N
	p.InputImage += u.InputImage.N
	p.CacheWrite += u.CacheWrite.N
	p.CacheWrite1h += u.CacheWrite1h.N
	p.Output += u.Output.N
	p.WebSearches += u.WebSearches.N
	return true
}

// addLine adds a line of a file, which names its endpoint
// (https://platform.openai.com/docs/guides/batch#1-prepare-your-batch-file).
func (a *Adder) addLine(line []byte) bool {
	object, ok := plugins.ParseObject(line)
	if !ok {
		return false
	}
	url, ok := onlyMember(object, "url")
	body, hasBody := onlyMember(object, "body")
	return ok && hasBody && a.add(url.Str, observe.Detect(a.Provider, url.Str), "", body.Raw)
}

// Inline returns the batch of the calls in a request: in Anthropic's `requests`, or in Gemini's,
// where the path names the model. model is "" for Anthropic
// (https://docs.claude.com/en/api/creating-message-batches,
// https://ai.google.dev/gemini-api/docs/batch-api#inline-requests).
func (a *Adder) Inline(model string, body *plugins.Object) (b Batch) {
	d, field := plugins.Messages, "params"
	list, ok := onlyMember(body, "requests")
	if model != "" {
		d, field = plugins.GenerateContent, "request"
		batch := onlyObject(body, "batch")
		if other, ok := onlyMember(batch, "model"); ok && strings.TrimPrefix(other.Str, "models/") != model {
			return b
		}
		list, ok = onlyMember(onlyObject(onlyObject(batch, "inputConfig", "input_config"), "requests"), "requests")
	}
	if !ok || !list.IsArray() {
		return b
	}
	list.ForEach(func(_, element gjson.Result) bool {
		object, _ := plugins.ParseObject([]byte(element.Raw))
		var request gjson.Result
		if request, ok = onlyMember(object, field); ok && d == plugins.GenerateContent {
			ok = !onlyObject(object, field).Get("model").Exists()
		}
		ok = ok && a.add("", d, model, request.Raw)
		return ok
	})
	if ok {
		b.Parts = a.sum
	}
	return b
}

// onlyMember returns the value of the member with one of the names, false if none or several have.
func onlyMember(o *plugins.Object, names ...string) (v gjson.Result, ok bool) {
	for _, m := range o.Members {
		if slices.Contains(names, m.Name) {
			if ok {
				return gjson.Result{}, false
			}
			v, ok = m.Value, true
		}
	}
	return v, ok
}

// onlyObject is onlyMember for an object, an empty one if there is no such member.
func onlyObject(o *plugins.Object, names ...string) *plugins.Object {
	v, _ := onlyMember(o, names...)
	object, _ := plugins.ParseObject([]byte(v.Raw))
	return object
}
