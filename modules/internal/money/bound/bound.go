// Package bound reads what a request can make a provider read and write: the most that the
// call can cost, whichever lane the call takes.
package bound

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// Demand is what a request can make a provider read and make.
type Demand struct {
	// Pictures is how many the model reads, Audio the tokens of audio.
	Pictures, Audio int64
	// Unbounded: the provider reads what the request only names. The model's limit alone
	// bounds the input.
	Unbounded bool
	// Hosted: the request has tools that the provider runs, and whose results it reads.
	Hosted bool
	// Searches: the provider may search.
	Searches bool

	gatewayCalls func(tool gjson.Result) bool // nil if the gateway calls no tool

	gemini  bool  // the request is Google's
	prompts int64 // how many texts the model reads by themselves, 0 for one
	linked  int64 // of the pictures: how many the provider fetches
	inline  int64 // bytes of the request that are pictures and audio
	tools   bool
	hosted  hostedTools
	unknown []string // options that count only by their bytes
	// writesCache and writesCache1h: the provider is asked to write its cache, which may
	// cost more than reading the input.
	writesCache, writesCache1h bool
	compacts                   bool  // the provider may write a summary before it answers
	predicted                  int64 // bytes of an answer that the client expects, charged if they are wrong
	turn
}

// hostedTools are the tools of a request that the provider runs.
type hostedTools struct {
	// painters are the models of tools that make pictures, advisors other models of tools, which read
	// what the model reads.
	painters, advisors []string
	calls              int64 // of all tools, 0 if the request does not bound them together
	uses               int64 // of all tools, by what each tool says of itself
	// containers is what the containers of tools cost, and perCall what a call of the dearest tool
	// costs beside tokens and searches.
	containers, perCall plugins.Nanodollars
}

// maxCalls bounds how often the provider calls the tools.
func (h *hostedTools) maxCalls() int64 { return min(cmp.Or(h.calls, h.uses, hostedCalls), maxCalls) }

// cost is an upper bound on what the tools cost beside tokens, searches and the models that they call.
func (h *hostedTools) cost() plugins.Nanodollars {
	return h.containers + h.perCall*plugins.Nanodollars(h.maxCalls())
}

// turn is what a request has in common with the other turns of its conversation.
type turn struct {
	pieces lineage.Pieces      // by which the next turn knows the request
	before lineage.EarlierTurn // whose tokens are known; zero if there is none
	// countedPictures and countedAudio are those of the turn before, which the provider has
	// counted. addedInline is inline without the bytes of that turn.
	addedInline, countedPictures, countedAudio int64
}

// plainFields are fields of requests with objects or arrays that make the provider read
// nothing beside them.
var plainFields = []string{
	"audio", "function_call", "functions", "include", "logit_bias", "metadata", "modalities", "output_config", "output_format",
	"reasoning", "response_format", "stop", "stop_sequences", "stream_options", "text", "thinking", "tool_choice",
}

// Of reads a request. What it does not know, the provider may look up: the input is
// then unbounded. gatewayCalls reports of a tool that the gateway calls it, nil if it calls none.
func Of(d plugins.Dialect, request *plugins.Object, gatewayCalls func(tool gjson.Result) bool) (found Demand) {
	found.gatewayCalls = gatewayCalls
	found.read(d, request)
	return found
}

// OfTurn is Of for a request to a target, whose turn before the counts may know. The
// gateway calls no tool of the request.
func OfTurn(counts *lineage.Counts, d plugins.Dialect, request *plugins.Object, target ...string) *Demand {
	found := &Demand{turn: turn{pieces: lineage.PiecesOf(request, append(target, string(d))...)}}
	found.before = counts.Find(found.pieces)
	found.read(d, request)
	return found
}

// Learn tells the counts how many tokens the provider has counted for the request, if it has. d
// may be nil.
func (d *Demand) Learn(counts *lineage.Counts, input plugins.Count) {
	if d != nil && input.Valid {
		counts.Learn(d.pieces, input.N)
	}
}

// Fetches reports whether the provider reads what the request only names.
func (d *Demand) Fetches() bool { return d.Unbounded || d.linked > 0 }

func (d *Demand) read(dialect plugins.Dialect, request *plugins.Object) {
	d.gemini = dialect == plugins.GenerateContent
	d.Unbounded = len(request.Members) == 0
	for _, member := range request.Members {
		name, v := member.Name, member.Value
		d.readCacheMark(name, v)
		if d.gemini && d.readGemini(name, v) {
			continue
		}
		switch name {
		case "input", "messages":
			if dialect == plugins.Embeddings {
				d.prompts += prompts(v)
			}
			d.readConversation(v)
		case "prompt":
			if dialect == plugins.Completions {
				d.prompts += prompts(v)
			}
			d.Unbounded = d.Unbounded || dialect.OfResponses() && v.Type != gjson.Null
		case "system", "images", "mask", "documents":
			d.readContent(v, 0)
		case "tools":
			d.readTools(v)
		case "toolConfig": // Bedrock's
			d.readTools(d.once(v, "tools"))
			d.readOption(name, v)
		case "max_tool_calls":
			if dialect.OfResponses() && v.Type != gjson.Null {
				d.hosted.calls = callsOf(v)
			}
		case "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention":
			d.writesCache = true
			d.writesCache1h = d.writesCache1h || name != "prompt_cache_key"
		case "prediction":
			d.predicted = int64(len(v.Raw))
		case "context_management":
			d.readEdits(v)
		case "previous_response_id", "conversation":
			d.Unbounded = d.Unbounded || v.Type != gjson.Null
		case "web_search_options", "search_parameters", "plugins":
			d.Hosted, d.Searches = true, true
		default:
			d.readOption(name, v)
		}
	}
}

// readOption reads a field that Weir does not know. An object or a list counts by its bytes,
// unless its name says that the provider fetches something.
func (d *Demand) readOption(name string, v gjson.Result) {
	switch {
	case slices.Contains(plainFields, name) || slices.Contains(cacheMarks, name) || !v.IsObject() && !v.IsArray() || v.Raw == "[]" || v.Raw == "{}":
	case d.gemini || fetches(name) || namesFetched(v, 0):
		d.Unbounded = true
	case len(d.unknown) < maxUnknown:
		d.unknown = append(d.unknown, strings.Clone(name))
	}
}

// readEdits reads how the provider edits the conversation: a list of edits at OpenAI, an object
// with such a list at Anthropic. All edits but those that clear parts, such as compact_20260112,
// may have the model read the conversation once more.
func (d *Demand) readEdits(management gjson.Result) {
	d.Unbounded = d.Unbounded || management.Type != gjson.Null
	management.ForEach(func(_, v gjson.Result) bool {
		if v.IsArray() {
			d.readEdits(v)
			return true
		}
		v.ForEach(func(key, kind gjson.Result) bool {
			d.compacts = d.compacts || key.Str == "type" && !strings.HasPrefix(kind.Str, "clear_")
			return true
		})
		return true
	})
}

// fetchedFields name what a provider fetches or has, and documents, which have more text
// than bytes.
var fetchedFields = []string{
	"audio_url", "document", "document_url", "file", "file_data", "file_id", "file_ids", "file_url", "video", "video_url",
}

// fetchedTypes are likewise those of parts of a conversation.
var fetchedTypes = []string{
	"audio_url", "container_upload", "document", "document_url", "file", "input_file", "input_video", "item_reference", "video", "video_url",
}

// readConversation reads the messages of a request. The provider has counted those that the turn
// before had, but a picture of an address may be another one now.
func (d *Demand) readConversation(v gjson.Result) {
	if !v.IsArray() || d.before.Messages == 0 {
		d.readContent(v, 0)
		return
	}
	remaining := d.before.Messages
	d.each(v, func(_ string, message gjson.Result) {
		before := *d
		d.readContent(message, 1)
		if remaining--; remaining < 0 {
			d.addedInline += d.inline - before.inline
			return
		}
		d.countedAudio += d.Audio - before.Audio
		d.countedPictures += d.Pictures - d.linked - before.Pictures + before.linked
	})
}

// maxContentDepth is how deep the parts of a conversation are read. What is deeper may be
// anything.
const maxContentDepth = 32

// partFields hold parts of a conversation. What looks like a picture elsewhere, such as in a
// schema or in variables of a shell, may be a text.
var partFields = []string{"content", "output", "parts"}

// readContent reads a part of the conversation, at any depth. All of a field that stands
// twice are read: libraries differ in which they take.
func (d *Demand) readContent(v gjson.Result, depth int) {
	switch {
	case depth > maxContentDepth:
		d.Unbounded = true
	case v.IsObject():
		d.readPart(v, depth)
	case v.IsArray():
		d.each(v, func(_ string, part gjson.Result) {
			if part.Type == gjson.JSON {
				d.readContent(part, depth+1)
			}
		})
	}
}

// each calls f for each part of v, and sees the beginnings of texts. What is no JSON may be
// anything for the provider.
func (d *Demand) each(v gjson.Result, f func(key string, part gjson.Result)) {
	d.Unbounded = !plugins.Heads(v, f) || d.Unbounded
}

// argumentFields hold the arguments of a call: the client's own text, whatever the names of its
// fields.
var argumentFields = []string{"arguments", "input"}

// pictureTypes are the types of pictures.
var pictureTypes = []string{"image", "image_url", "input_image", "computer_screenshot"}

// part is what the fields of an object in a conversation say.
type part struct {
	picture bool // it is a picture
	linked  bool // the provider fetches the picture
	sent    bool // the request has the picture
	fetched bool // the provider reads a file that the object names
	call    bool // of a tool

	// The provider looks up reasoning that has an id and no encrypted content.
	reasoning, hasID, encrypted bool

	source gjson.Result // of a picture or a document at Anthropic
	nested []field      // objects and lists in it
}

// field is a field of an object.
type field struct {
	name string
	v    gjson.Result
}

// readPart reads an object in a conversation. A text beside a picture is a text: not all
// providers refuse it.
func (d *Demand) readPart(v gjson.Result, depth int) {
	p := part{nested: make([]field, 0, 4)}
	d.each(v, func(key string, value gjson.Result) {
		d.readCacheMark(key, value)
		d.readField(&p, key, value)
	})
	kind := d.once(p.source, "type").Str
	if p.fetched && kind != "text" && kind != "content" || p.reasoning && p.hasID && !p.encrypted {
		d.Unbounded = true
	}
	if p.picture && !p.fetched && kind == "base64" {
		d.Unbounded = d.Unbounded || !strings.HasPrefix(d.once(p.source, "media_type").Str, imageKind)
		d.inline += int64(len(p.source.Raw))
		p.sent = true
	}
	if p.picture {
		d.Pictures++
	}
	if p.picture && (p.linked || !p.sent) {
		d.linked++
	}
	for _, f := range p.nested {
		if p.call && slices.Contains(argumentFields, f.name) {
			continue
		}
		inline := d.inline
		d.readContent(f.v, depth+1)
		if !slices.Contains(partFields, f.name) {
			d.inline = inline
		}
	}
}

// readField reads a field of an object in a conversation.
func (d *Demand) readField(p *part, key string, value gjson.Result) {
	switch key {
	case "type":
		p.picture = p.picture || slices.Contains(pictureTypes, value.Str)
		p.fetched = p.fetched || slices.Contains(fetchedTypes, value.Str)
		p.call = p.call || value.Str == "tool_use" || value.Str == "function_call"
		p.reasoning = p.reasoning || value.Str == "reasoning"
	case "image_url", "image":
		address := value.Str + d.once(value, "url").Str
		kind, data := strings.CutPrefix(address, "data:")
		p.picture, p.linked, p.sent = true, p.linked || !data, p.sent || data
		p.fetched = p.fetched || data && !strings.HasPrefix(kind, imageKind)
		if data {
			d.inline += int64(len(value.Raw))
		}
		return
	case "input_audio":
		d.readAudio(value)
		d.inline += int64(len(value.Raw))
		return
	case "audio":
		p.fetched = p.fetched || value.Get("id").Exists() // an earlier answer
	case "encrypted_content":
		p.encrypted = p.encrypted || value.Str != ""
	case "id":
		p.hasID = true
	case "source": // libraries differ in which of two they take
		d.Unbounded = d.Unbounded || p.source.Exists()
		p.source = value
	case "tools":
		if value.IsArray() { // an object is of a schema
			d.readTools(value)
		}
	default:
		if d.gemini && d.readGeminiPart(key, value) {
			return
		}
		p.fetched = p.fetched || slices.Contains(fetchedFields, key) && value.Type != gjson.Null
	}
	if value.Type == gjson.JSON {
		p.nested = append(p.nested, field{key, value})
	}
}

// imageKind begins the media types of pictures. Hosts of Gemini read whatever else is sent as a
// picture by its type, such as hours of video.
const imageKind = "image/"

// once returns a field of an object. If the field stands several times, the request is
// unbounded: libraries differ in which they take.
func (d *Demand) once(v gjson.Result, name string) (found gjson.Result) {
	if !v.IsObject() {
		return found
	}
	d.each(v, func(key string, field gjson.Result) {
		if key == name {
			d.Unbounded = d.Unbounded || found.Exists()
			found = field
		}
	})
	return found
}

// cacheMarks end a prefix that the provider shall write to its cache: Anthropic's, OpenAI's and
// Bedrock's. Each may be translated to the others.
var cacheMarks = []string{"cache_control", "prompt_cache_breakpoint", "cachePoint"}

// readCacheMark reads a field of the request, of a part of the conversation or of a tool, if it is a mark.
func (d *Demand) readCacheMark(name string, v gjson.Result) {
	if !slices.Contains(cacheMarks, name) || !v.IsObject() {
		return
	}
	d.writesCache = true
	v.ForEach(func(key, ttl gjson.Result) bool {
		d.writesCache1h = d.writesCache1h || key.Str == "ttl" && ttl.Str != "5m"
		return true
	})
}

// readTools reads the tools of a request, or those that an item adds in the middle of a
// conversation (https://developers.openai.com/api/docs/guides/tools-tool-search).
func (d *Demand) readTools(tools gjson.Result) {
	tools.ForEach(func(_, tool gjson.Result) bool {
		d.tools = true
		uses, hosted, paints := int64(0), false, false
		if nested := tool.Get("tools"); nested.IsArray() { // of a namespace
			d.readTools(nested)
		}
		tool.ForEach(func(key, v gjson.Result) bool {
			d.readCacheMark(key.Str, v)
			switch {
			case key.Str == "function": // where some servers of Chat Completions read marks
				v.ForEach(func(key, v gjson.Result) bool { d.readCacheMark(key.Str, v); return true })
			case key.Str == "max_uses":
				uses = max(uses, callsOf(v))
			case key.Str == "systemTool": // of Converse
				name := v.Get("name").Str
				hosted = true
				d.Searches = d.Searches || strings.Contains(name, "grounding")
				if name != "nova_grounding" { // code, or what is not known
					d.hosted.containers += containerPrice("code_interpreter", tool)
				}
			case key.Str != "type" || d.gatewayCalls != nil && d.gatewayCalls(tool):
			case v.Str == "image_generation":
				paints = true
			case !runsAtClient(v.Str, tool):
				hosted = true
				d.Searches = d.Searches || strings.Contains(v.Str, "search")
				d.hosted.perCall = max(d.hosted.perCall, callPrices[v.Str])
				d.hosted.containers += containerPrice(v.Str, tool)
			}
			return true
		})
		if !hosted && !paints {
			return true
		}
		d.Hosted = true
		if d.hosted.uses += cmp.Or(uses, hostedCalls); !paints {
			d.hosted.advisors = append(d.hosted.advisors, modelsOf(tool)...)
		} else if models := modelsOf(tool); models != nil {
			d.hosted.painters = append(d.hosted.painters, models...)
		} else {
			d.hosted.painters = append(d.hosted.painters, imageModel)
		}
		return true
	})
}

// callsOf returns how many calls a limit of calls allows.
func callsOf(limit gjson.Result) int64 {
	switch {
	case limit.Type == gjson.Null:
		return hostedCalls
	case limit.Num > maxCalls: // which may be more than an integer holds
		return maxCalls
	}
	return min(max(limit.Int(), 1), maxCalls)
}

// modelsOf returns the models that a tool names: libraries differ in which of several they take.
func modelsOf(tool gjson.Result) (models []string) {
	tool.ForEach(func(key, v gjson.Result) bool {
		if key.Str == "model" && v.String() != "" {
			models = append(models, v.String())
		}
		return true
	})
	return models
}

// Usage returns an upper bound on what a call uses, where by counts the tokens of text. bytes is the
// size of the request, as it is or translated. answerTokens bounds each answer, 0 if nothing does.
func (d *Demand) Usage(m *catalog.Model, by Scale, bytes, answerTokens, answers int64) plugins.Usage {
	limit := m.InputLimit() * max(d.prompts, 1)
	searches := d.Searches || slices.ContainsFunc(searchModels, func(part string) bool { return strings.Contains(m.ID, part) })
	unbounded := d.Unbounded || d.Hosted || searches || d.linked > 0 && slices.Contains(hostsOfGemini, m.Provider) ||
		d.unknown != nil && slices.Contains(fetchingProviders, m.Provider)
	perPicture := int64(PictureTokens)
	if strings.Contains(m.ID, "gpt-4o-mini") {
		perPicture = pictureTokens4oMini
	}
	text := bytes - d.inline
	if d.before.Messages > 0 {
		text = d.before.Added - d.addedInline
	}
	tokens := d.before.Tokens + by.Text(max(text, 0)) + (d.Pictures-d.countedPictures)*perPicture + d.Audio - d.countedAudio
	ofClaude := slices.Contains(hostsOfClaude, m.Provider)
	if d.tools && ofClaude {
		tokens += toolTokens
	}
	if tokens = min(tokens, limit); unbounded {
		tokens = limit
	}
	written := by.Text(d.predicted)
	if d.compacts {
		tokens, written = 2*tokens, written+m.OutputLimit()
	}
	u := plugins.Usage{Input: plugins.Known(tokens), InputAudio: plugins.Known(d.Audio), InputImage: plugins.Known(d.Pictures * perPicture)}
	if unbounded { // what is fetched may be anything
		u.InputAudio, u.InputImage = u.Input, u.Input
	}
	if d.writesCache || !ofClaude {
		u.CacheWrite = u.Input
	}
	if d.writesCache1h {
		u.CacheWrite1h = u.Input
	}
	output := m.OutputLimit()
	if answerTokens > 0 {
		output = min(output, answerTokens)
	}
	u.Output = plugins.Known(min(output*answers, math.MaxInt32) + written)
	if searches {
		u.WebSearches = plugins.Known(d.hosted.maxCalls())
	}
	return u
}
