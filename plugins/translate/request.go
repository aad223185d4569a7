package translate

import (
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// Request is the body of POST /v1/responses in the form that provider plugins
// translate: tools flattened, history in turns, every call with its output. What
// the client left out is nil, "" or an unknown Count. A plugin that cannot honour a
// value unsets it, for the response reports the value that was used.
//
// A copy of a Request is independent of it as long as its slices do not change:
// give each attempt a copy to try several targets.
type Request struct {
	// Raw is the body as the client sent it, or of a client of another API the body
	// of POST /v1/responses that asks for the same.
	Raw json.RawMessage
	// Model is the model as the client named it, or once it is known, as the
	// provider does.
	Model string
	// Stream is true when the client asked for a stream.
	Stream bool

	// Instructions come before the turns.
	Instructions string
	// Turns are the input. A turn of the assistant that makes calls is followed
	// by one turn of RoleTool with exactly one output for each of them.
	Turns []Turn

	// Tools are the tools that the model may use, those of namespaces under
	// their flat names.
	Tools []Tool
	// ToolChoice says which of Tools the model may or must use.
	ToolChoice ToolChoice
	// ParallelToolCalls is whether one turn may have several calls.
	ParallelToolCalls *bool

	// Format is the form that the text of the answer must have.
	Format Format
	// Verbosity is low, medium or high.
	Verbosity string
	// Reasoning are the settings of the model's thinking.
	Reasoning Reasoning

	// Temperature is a sampling temperature of 0 to 2.
	Temperature *float64
	// TopP is a nucleus sampling probability of 0 to 1.
	TopP *float64
	// PresencePenalty is a number of -2 to 2.
	PresencePenalty *float64
	// FrequencyPenalty is a number of -2 to 2.
	FrequencyPenalty *float64
	// TopLogprobs is how many alternatives the logprobs of a token have, 0 to 20.
	TopLogprobs plugins.Count

	// MaxOutputTokens limits the output, reasoning included.
	MaxOutputTokens plugins.Count
	// MaxToolCalls limits the calls of hosted tools.
	MaxToolCalls plugins.Count

	// Include are the parts of the answer that are left out unless asked for,
	// such as "reasoning.encrypted_content".
	Include []string
	// ServiceTier is the tier asked for.
	ServiceTier string
	// Truncation is auto or disabled.
	Truncation string
	// User is the client's name for its user (deprecated by OpenAI).
	User string
	// SafetyIdentifier is the client's name for its user.
	SafetyIdentifier string
	// PromptCacheKey groups the requests that may share a cache.
	PromptCacheKey string
	// Metadata is an object of strings, nil if there is none.
	Metadata json.RawMessage

	// Foreign are the fields that a client of another API sent and Responses does
	// not have, by that client's names. Apply leaves them out with a warning.
	Foreign []string
	// HidesReasoning: the client's API shows reasoning only to those who ask for it, which the
	// client has not.
	HidesReasoning bool
	// Names are the names of the fields of Raw to a client of another API (FromOtherAPI), and those of
	// the items to a client that goes on with an earlier response. nil: Raw has the client's names.
	Names *Names

	// State is what the host keeps beside the response, which says so.
	State State

	mcp     map[string][]Tool // of ParseMCP
	changed []string          // paths of the fields that differ from those of Raw

	// Strict makes what would be a warning an error.
	Strict bool
	// Warnings are lines "<field>: <what was done>" for Service-Warnings.
	Warnings []string
}

// State is what a host keeps of a response and its conversation.
type State struct {
	// Stored is true when the response can be had later.
	Stored bool
	// Background is true when the response is generated while nobody waits.
	Background bool
	// PreviousResponseID is the response whose conversation goes on, "" if there is
	// none. Its items are among the turns.
	PreviousResponseID string
	// ConversationID is the conversation that the response is added to, "" if there is
	// none. Its items are among the turns.
	ConversationID string
}

// Role is the author of a turn or message.
type Role string

// The roles. RoleTool is the role of a turn with tool outputs, never of a message.
const (
	RoleUser      Role = "user"
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Turn is a run of items of one speaker.
type Turn struct {
	Role  Role
	Items []Item
}

// Item is a *Message, a *ToolCall, a *ToolOutput or a *ReasoningItem. Turns of
// the assistant hold messages, calls and reasoning; those of RoleTool outputs;
// the others messages.
type Item interface{ item() }

// Message is text and media of one role.
type Message struct {
	// Index is the item's position in the input.
	Index int
	Role  Role
	// Phase is commentary or final_answer, on messages of the assistant.
	Phase   string
	Content []Part
}

// ToolCall is a function_call or custom_tool_call.
type ToolCall struct {
	// Index is the item's position in the input.
	Index int
	// CallID is the client's, verbatim, and what the output is joined by.
	CallID string
	// Name is the tool's flat name, as Tool.Name has it.
	Name string
	// Custom says that Arguments is free-form input in place of JSON.
	Custom    bool
	Arguments string
}

// ToolOutput is a function_call_output or custom_tool_call_output.
type ToolOutput struct {
	// Index is the item's position in the input.
	Index  int
	CallID string
	// Name and Custom are copied from the call.
	Name   string
	Custom bool
	// Failed says that the client marked the output as incomplete.
	Failed  bool
	Content []Part
}

// ReasoningItem is what the model thought in an earlier turn.
type ReasoningItem struct {
	// Index is the item's position in the input.
	Index   int
	ID      string
	Summary []string
	// Content is the raw reasoning, if the provider returns it.
	Content []string
	// EncryptedContent is what the plugin gave to Assembler.Seal, once
	// Request.Unseal has opened it.
	EncryptedContent string
}

func (*Message) item()       {}
func (*ToolCall) item()      {}
func (*ToolOutput) item()    {}
func (*ReasoningItem) item() {}

// Visitor has a function for each kind of item.
type Visitor struct {
	Message   func(*Message) error
	Reasoning func(*ReasoningItem) error
	// Call gets the arguments as [ToolCall.Object] has them.
	Call   func(call *ToolCall, arguments json.RawMessage) error
	Output func(*ToolOutput) error
}

// Visit calls the functions of v with the items of the turn, until one returns an error.
func (t Turn) Visit(v Visitor) (err error) {
	for _, item := range t.Items {
		switch item := item.(type) {
		case *Message:
			err = v.Message(item)
		case *ReasoningItem:
			err = v.Reasoning(item)
		case *ToolCall:
			err = v.Call(item, item.Object())
		case *ToolOutput:
			err = v.Output(item)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PartType is the type of a content part, as the Responses API names it.
type PartType string

// The content parts. input_text and output_text are both PartText.
const (
	PartText    PartType = "input_text"
	PartRefusal PartType = "refusal"
	PartImage   PartType = "input_image"
	PartFile    PartType = "input_file"
	PartAudio   PartType = "input_audio"
)

// Part is a piece of a message's or output's content: text, or media that is
// inline (MediaType and Data), or at URL, or known to a provider as FileID.
type Part struct {
	// Param is the path of the part in the body, such as "input[0].content[1]".
	Param string
	Type  PartType
	// Text is the text of a PartText or a PartRefusal.
	Text string
	// MediaType is the media type of Data, such as "image/png".
	MediaType string
	// Data is in standard base64.
	Data     string
	URL      string
	FileID   string
	Filename string
	// Detail is low, high, auto or original.
	Detail string
	CacheMark
	// Cited says that the part is a document, and that the answer shall name what it
	// takes from it. Clients of Messages ask for that.
	Cited bool
}

// CacheMark says whether a part or a tool ends a prefix of the prompt that should be cached. Tools
// come before all parts.
type CacheMark struct {
	// CacheBreakpoint says that the prompt up to here should be cached, and CachesLonger for longer
	// than by default.
	CacheBreakpoint, CachesLonger bool
}

func cacheMarkOf(v gjson.Result) CacheMark {
	mark := v.Get("prompt_cache_breakpoint")
	ttl := mark.Get("ttl")
	return CacheMark{CacheBreakpoint: mark.IsObject(), CachesLonger: ttl.Exists() && ttl.Str != "5m"}
}

// Bytes decodes Data. The error is a 400 that names the part.
func (p *Part) Bytes() ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(p.Data)
	if err != nil {
		return nil, plugins.Invalid(p.Param, "The data is not valid base64.")
	}
	return b, nil
}

// DataURL is the media as a URL: a data: URL if it is inline.
func (p *Part) DataURL() string {
	if p.Data == "" {
		return p.URL
	}
	return "data:" + p.MediaType + ";base64," + p.Data
}

// Tool is a tool that the model may use: a function, a custom tool, or one that
// the provider hosts.
type Tool struct {
	// Param is the path of the tool in the body, such as "tools[0]".
	Param string
	// Type is function, custom, or the type of a hosted tool.
	Type string
	// Name is flat: that of a tool in a namespace is "<namespace>__<name>".
	Name string
	// Namespace is the one that the tool is in, "" for most.
	Namespace   string
	Description string
	// Parameters is the JSON Schema of a function's arguments, nil for none.
	Parameters json.RawMessage
	Strict     *bool
	// Format is the grammar of a custom tool's input, nil for any text.
	Format json.RawMessage
	CacheMark
	// Raw is the tool as the client sent it.
	Raw json.RawMessage
	// MCP names the tool at its MCP server, nil unless the host calls the tool there.
	MCP *MCPTool

	given    string // the client's name, if FitCalls has given the tool another one
	searches bool   // it is a tool_search that the client runs, offered as a function
}

// Hosted reports whether the provider runs the tool.
func (t *Tool) Hosted() bool { return t.Type != "function" && t.Type != "custom" }

// ToolChoice says which tools the model may or must use.
type ToolChoice struct {
	// Mode is auto, none or required; "" where the client did not say. A
	// choice of one tool is required.
	Mode string
	// Type is that of the one tool that must be used: function, custom or the
	// type of a hosted tool.
	Type string
	// Name is the flat name of that tool.
	Name string
	// Allowed are the flat names (for hosted tools the types) that Mode is
	// about, nil for all.
	Allowed []string
}

// Format is the form that the text of an answer must have.
type Format struct {
	// Type is text, json_object or json_schema; "" where the client did not say.
	Type        string
	Name        string
	Description string
	// Schema is the schema of json_schema.
	Schema json.RawMessage
	Strict *bool
}

// Reasoning are the settings of a model's thinking.
type Reasoning struct {
	// Effort is none, minimal, low, medium, high, xhigh or max.
	Effort string
	// Summary is auto, concise or detailed.
	Summary string
}

// Field is the raw value of a top-level or nested field of the body, by its
// path ("text.verbosity"), nil if the client did not send it or sent null.
func (p *Request) Field(path string) json.RawMessage { return fieldOf(p.Raw, path) }

func fieldOf(object json.RawMessage, path string) json.RawMessage {
	v := gjson.GetBytes(object, path)
	if v.Type == gjson.Null {
		return nil
	}
	return json.RawMessage(v.Raw)
}

// CachesLonger reports whether the client asks to have the prompt cached for longer than by
// default.
func (p *Request) CachesLonger() bool {
	return p.Field("prompt_cache_options.ttl") != nil || string(p.Field("prompt_cache_retention")) == `"24h"`
}

// OneCall reports whether one turn may have one call at most.
func (p *Request) OneCall() bool { return p.ParallelToolCalls != nil && !*p.ParallelToolCalls }

// Clone returns a request that an attempt may change: what is appended to its lists is in no other
// request.
func (p *Request) Clone() Request {
	clone := *p
	clone.Warnings, clone.changed = slices.Clip(p.Warnings), slices.Clip(p.changed)
	return clone
}

// FromOtherAPI reports whether the client is one of Chat Completions or Messages.
func (p *Request) FromOtherAPI() bool { return p.Names != nil && p.Names.Fields != nil }

// Tool is the tool of that flat name, nil if there is none.
func (p *Request) Tool(name string) *Tool {
	for i := range p.Tools {
		if p.Tools[i].Name == name {
			return &p.Tools[i]
		}
	}
	return nil
}

var (
	_ Item = (*Message)(nil)
	_ Item = (*ToolCall)(nil)
	_ Item = (*ToolOutput)(nil)
	_ Item = (*ReasoningItem)(nil)
)
