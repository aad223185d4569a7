package translate

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// itemKey is the key of items that come whole.
const itemKey = math.MinInt

// Image adds a generated image, given in base64.
func (a *Assembler) Image(mediaType, b64 string) {
	if !a.takes(len(b64)) {
		return
	}
	a.closeAll(statusCompleted)
	o := &Output{Kind: ImageOutput, Format: strings.TrimPrefix(mediaType, "image/")}
	a.announce(o)
	o.Image = b64
	a.settle(o, statusCompleted)
	a.flush()
}

// Note adds a text of its own, which is not the model's: no stop sequence ends it.
func (a *Assembler) Note(s string) {
	if !a.takes(len(s)) {
		return
	}
	a.closeAll(statusCompleted)
	o := a.opened(MessageOutput, itemKey)
	a.write(o, a.addPart(o, TextPart), s)
	a.Close(itemKey)
}

// Unplaced adds a note about media that the model generated and that no translated answer has a place
// for, such as "audio/wav": without it, the answer would seem to be complete.
func (a *Assembler) Unplaced(mediaType string) {
	a.Note(UnplacedMedia(mediaType, "an answer that is translated. Call a provider that speaks your API"))
}

// UnplacedMedia is the text about media that the model generated, for which there is no place in an
// answer.
func UnplacedMedia(mediaType, answer string) string {
	return "[The model generated " + cmp.Or(mediaType, "media") + ", for which there is no place in " + answer + ".]"
}

// Item adds a whole item of the Responses API under a new id, such as the web_search_call
// of a provider that speaks Responses. It ignores what is no object with a type.
func (a *Assembler) Item(raw json.RawMessage) {
	item := compact(raw, '{')
	v := gjson.ParseBytes(item)
	if v.Get("type").Str == "" || a.done() {
		return
	}
	a.closeAll(statusCompleted)
	switch v.Get("type").Str {
	case "message":
		for _, p := range v.Get("content").Array() {
			a.Text(itemKey, p.Get("text").Str)
			for _, annotation := range p.Get("annotations").Array() {
				a.Annotation(itemKey, json.RawMessage(annotation.Raw))
			}
			a.Refusal(itemKey, p.Get("refusal").Str)
		}
	case "reasoning":
		for i, p := range v.Get("summary").Array() {
			a.Summary(itemKey, i, p.Get("text").Str)
		}
		for _, p := range v.Get("content").Array() {
			a.ReasoningText(itemKey, p.Get("text").Str)
		}
		a.Seal(itemKey, v.Get("encrypted_content").Str)
	case "function_call":
		a.Call(itemKey, v.Get("call_id").Str, FlatName(v))
		a.Args(itemKey, v.Get("arguments").Str)
	case "custom_tool_call":
		a.Call(itemKey, v.Get("call_id").Str, FlatName(v))
		a.CustomInput(itemKey, v.Get("input").Str)
	default:
		a.native(item, v)
	}
	a.Close(itemKey)
}

// native adds an item that has no text to stream. An incomplete item has failed.
func (a *Assembler) native(item []byte, v gjson.Result) {
	if !a.takes(len(item)) {
		return
	}
	if v.Get("status").Str == statusIncomplete { // only the last item may be, and whether it is shows later
		item, _ = sjson.SetBytes(item, "status", statusFailed)
	}
	a.commit()
	a.addWhole(item)
	a.flush()
}

// addWhole adds an item under a new id.
func (a *Assembler) addWhole(item []byte) {
	a.grow(itemSize)
	prefix := cmp.Or(map[string]string{"mcp_list_tools": "mcpl_", "mcp_call": "mcp_"}[gjson.GetBytes(item, "type").Str], idPrefixes[HostedOutput])
	o := &Output{Kind: HostedOutput, Index: len(a.items), ID: a.opts.ID(prefix)}
	o.JSON, _ = sjson.SetBytes(item, "id", o.ID) // an object, and a path without wildcards
	a.items = append(a.items, o)
	a.emit(Event{Type: ItemOpened, Output: o})
	a.emit(Event{Type: ItemClosed, Output: o})
}

func inProgress(item []byte) []byte {
	if gjson.GetBytes(item, "status").Exists() {
		item, _ = sjson.SetBytes(item, "status", statusInProgress)
	}
	return item
}

// FlatName is the name of the tool that an item calls, as Tool.Name has it.
func FlatName(v gjson.Result) string { return flat(v.Get("namespace").Str, v.Get("name").Str) }

// flat is the name of a tool in a namespace. A tool without a namespace keeps its name.
func flat(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + separator + name
}

const separator = "__"

// Citation is the source of a part of a text: a web page, or a document of the request.
type Citation struct {
	// Start and End bound the part, in characters of the message's text so far.
	Start, End int64
	URL        string
	// Title is the title of the source. A web page has its URL by default, because clients
	// demand a title.
	Title string
	// Location is the citation of a document as Anthropic's Messages has it, nil for a
	// web page.
	Location json.RawMessage
}

// Cite annotates the text of a message. It ignores a source without a URL and a location,
// which no client could use.
func (a *Assembler) Cite(key int, c Citation) {
	end := min(max(c.End, 0), a.Length(key))
	annotation := object{"start_index": min(max(c.Start, 0), end), "end_index": end}
	switch {
	case c.URL != "":
		annotation["type"], annotation["url"], annotation["title"] = "url_citation", c.URL, cmp.Or(c.Title, c.URL)
	case c.Location != nil:
		annotation["type"], annotation["file_id"], annotation["filename"], annotation["index"] = "file_citation", "", c.Title, end
		annotation["location"] = c.Location
	default:
		return
	}
	raw, _ := json.Marshal(annotation) // strings, numbers and JSON
	a.Annotation(key, raw)
}

type object map[string]any

// HostedCall is a call of a tool that the provider hosts, with its result.
type HostedCall struct {
	Failed bool
	// Queries and Sources belong to a web search. A source is a URL.
	Queries, Sources []string
	// Code and Logs belong to a code interpreter.
	Code, Logs string
}

// PendingCall is a call of a tool that the provider hosts, until its result comes.
type PendingCall struct {
	ID, Name string
	Input    []byte // JSON
}

// PendingCalls are the calls of an answer that have no result yet.
type PendingCalls []PendingCall

// Take removes and returns the call with an ID.
func (c *PendingCalls) Take(id string) (call PendingCall, ok bool) {
	i := slices.IndexFunc(*c, func(call PendingCall) bool { return call.ID == id })
	if i < 0 {
		return PendingCall{}, false
	}
	call = (*c)[i]
	*c = slices.Delete(*c, i, i+1)
	return call, true
}

// WebSearch adds a search of the web.
func (a *Assembler) WebSearch(c HostedCall) {
	sources := make([]object, len(c.Sources))
	for i, url := range c.Sources {
		sources[i] = object{"type": "url", "url": url}
	}
	query := ""
	if len(c.Queries) > 0 {
		query = c.Queries[0]
	}
	a.hosted(object{
		"type": "web_search_call", "status": c.status(),
		"action": object{"type": "search", "query": query, "queries": c.Queries, "sources": sources},
	})
}

// CodeInterpreter adds code that was run.
func (a *Assembler) CodeInterpreter(c HostedCall) {
	a.hosted(object{
		"type": "code_interpreter_call", "status": c.status(), "code": c.Code, "container_id": "",
		"outputs": []object{{"type": "logs", "logs": c.Logs}},
	})
}

func (a *Assembler) hosted(item object) {
	raw, _ := json.Marshal(item) // strings and lists of them
	a.Item(raw)
}

func (c *HostedCall) status() string {
	if c.Failed {
		return statusFailed
	}
	return statusCompleted
}

// WebSearch is the policy for the web search, which has several versions.
var WebSearch = Policy{
	"tools.web_search":                    Translate,
	"tools.web_search_2025_08_26":         Translate,
	"tools.web_search_preview":            Translate,
	"tools.web_search_preview_2025_03_11": Translate,
}
