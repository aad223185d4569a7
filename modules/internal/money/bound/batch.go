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

// Batch is what the calls of a batch can use at most. The record of a batch has it, and the
// record of an uploaded file with calls. The zero Batch is not known.
type Batch struct {
	// Reservation is that of the batch, by which it ends; the zero UUID if nothing is set aside.
	Reservation uuid.UUID `json:"reservation,omitzero"`
	// Parts are added up by model.
	Parts []*BatchPart `json:"parts"`
}

// BatchPart are the calls of one model at one endpoint. All counts but Calls are tokens.
type BatchPart struct {
	Model string `json:"model"`
	// Endpoint is the URL that the lines of a file name, "" for calls within a request.
	Endpoint string `json:"endpoint,omitempty"`
	Calls    int64  `json:"calls"`
	// Tools are the models that tools of the calls name.
	Tools []string `json:"tools,omitempty"`
	// Longest is the longest input.
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

// ParseBatch reads what a record has of a batch.
func ParseBatch(text storage.JSONText) (b Batch) {
	if json.Unmarshal([]byte(text), &b) != nil {
		return Batch{}
	}
	return b
}

// Text is the batch as a record has it, "" if it is not known.
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

// Names returns the models of the batch and those that its calls name beside them.
func (b Batch) Names() []string {
	names := b.Models()
	for _, part := range b.Parts {
		names = append(names, part.Tools...)
	}
	return names
}

// MadeBy returns b if a request makes a batch of it: of one file, all of whose calls are at the
// endpoint that the request names. Else the batch is not known.
func (b Batch) MadeBy(request *plugins.Object) Batch {
	_, one := only(request, "input_file_id")
	endpoint, named := only(request, "endpoint")
	if !one || !named || slices.ContainsFunc(b.Parts, func(part *BatchPart) bool { return part.Endpoint != endpoint.Str }) {
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

// Cost returns what a batch of one model has cost that used so much in all, unknown for more
// models. If longer inputs have another price, all of the usage has the dearer of the two.
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

// add adds a call, and reports false if the most that the call uses is not known. The model
// is that of the body if it is "".
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
	if !ok || reads.Painters != nil || reads.Advisors != nil || reads.hostedCost() > 0 {
		return false
	}
	// With a header, calls of a batch write more than the model's limit
	// (https://platform.claude.com/docs/en/build-with-claude/batch-processing#extended-output-beta).
	if limit, err := r.OutputLimit(); d == plugins.Messages && err == nil {
		u.Output.N += max(limit-m.OutputLimit(), 0)
	}
	i := slices.IndexFunc(a.sum, func(part *BatchPart) bool { return part.Model == model && part.Endpoint == endpoint })
	if i < 0 {
		if i = len(a.sum); i == maxBatchParts {
			return false
		}
		a.sum = append(a.sum, &BatchPart{Model: strings.Clone(model), Endpoint: strings.Clone(endpoint)})
	}
	part := a.sum[i]
	for _, name := range r.ToolModels() {
		if slices.Contains(part.Tools, name) {
			continue
		}
		if len(part.Tools) == maxBatchParts {
			return false
		}
		part.Tools = append(part.Tools, strings.Clone(name))
	}
	part.Calls++
	part.Longest = max(part.Longest, u.Input.N)
	part.Input, part.InputAudio, part.InputImage = part.Input+u.Input.N, part.InputAudio+u.InputAudio.N, part.InputImage+u.InputImage.N
	part.CacheWrite, part.CacheWrite1h = part.CacheWrite+u.CacheWrite.N, part.CacheWrite1h+u.CacheWrite1h.N
	part.Output += u.Output.N
	part.WebSearches += u.WebSearches.N
	return true
}

// addLine adds a line of a file, which names its endpoint
// (https://platform.openai.com/docs/guides/batch#1-prepare-your-batch-file).
func (a *Adder) addLine(line []byte) bool {
	object, ok := plugins.ParseObject(line)
	if !ok {
		return false
	}
	url, ok := only(object, "url")
	body, ok2 := only(object, "body")
	return ok && ok2 && a.add(url.Str, observe.Detect(a.Provider, url.Str), "", body.Raw)
}

// Inline returns what the calls use that stand within a request: Anthropic's `requests`, or
// Gemini's, whose model the path names
// (https://docs.claude.com/en/api/creating-message-batches,
// https://ai.google.dev/gemini-api/docs/batch-api#inline-requests).
func (a *Adder) Inline(model string, body *plugins.Object) (b Batch) {
	d, field := plugins.Messages, "params"
	list, ok := only(body, "requests")
	if model != "" {
		d, field = plugins.GenerateContent, "request"
		batch := within(body, "batch")
		if named, has := only(batch, "model"); has && strings.TrimPrefix(named.Str, "models/") != model {
			return b
		}
		list, ok = only(within(within(batch, "inputConfig", "input_config"), "requests"), "requests")
	}
	if !ok || !list.IsArray() {
		return b
	}
	list.ForEach(func(_, element gjson.Result) bool {
		object, _ := plugins.ParseObject([]byte(element.Raw))
		var request gjson.Result
		if request, ok = only(object, field); ok && d == plugins.GenerateContent {
			ok = !within(object, field).Get("model").Exists()
		}
		ok = ok && a.add("", d, model, request.Raw)
		return ok
	})
	if ok {
		b.Parts = a.sum
	}
	return b
}

// only returns the one member of an object that has one of the names, false if none has, or
// several.
func only(o *plugins.Object, names ...string) (v gjson.Result, ok bool) {
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

// within is the object that is the only member of one of the names, an empty one if there is
// no such member.
func within(o *plugins.Object, names ...string) *plugins.Object {
	v, _ := only(o, names...)
	object, _ := plugins.ParseObject([]byte(v.Raw))
	return object
}
