package cache

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
)

// Request is a request as the provider gets it.
type Request struct {
	Org string
	// Target says which provider gets it, and on whose account.
	Target              []string
	Method, Path, Query string
	Dialect             plugins.Dialect
	Header              http.Header
	Body                *plugins.Object
}

// dialects are those whose answers the cache may give again.
var dialects = []plugins.Dialect{
	plugins.Chat, plugins.Completions, plugins.Responses, plugins.Messages, plugins.GenerateContent, plugins.Converse,
	plugins.Embeddings, plugins.EmbedContent, plugins.Rerank, plugins.Moderations,
}

// structures are the fields that may have objects or lists. Any other one may make the provider
// do what the cache does not know.
var structures = []string{
	"audio", "chat_template_kwargs", "content", "contents", "documents", "function_call", "functions", "generationConfig", "generation_config",
	"include", "inferenceConfig", "input", "instructions", "labels", "logit_bias", "messages", "metadata", "modalities", "output_config", "output_format",
	"prediction", "prompt", "reasoning", "requests", "response_format", "safetySettings", "safety_settings", "stop", "stopSequences", "stop_sequences",
	"stream_options", "system", "systemInstruction", "system_instruction", "text", "texts", "thinking", "toolConfig", "tool_choice", "tool_config", "tools",
}

// acting are the fields by which a request changes or reads what the provider keeps, or the web.
var acting = []string{
	"background", "cachedContent", "cached_content", "container", "conversation", "enable_search", "live_search", "mcp_servers",
	"plugins", "previous_response_id", "search_parameters", "thread", "web_search", "web_search_options",
}

// searching are parts of the names of models that search the web, or run tools, for each answer: of
// OpenAI, Perplexity, OpenRouter and Groq.
var searching = []string{"-search-preview", "-search-api", "sonar", ":online", "compound", "deep-research"}

// refusal says why the cache does not answer the request, as far as its fields tell without their
// content, "" if it may.
func (q *Request) refusal() string {
	switch {
	case q.Method != http.MethodPost || !slices.Contains(dialects, q.Dialect):
		return "requests of this kind are not cached"
	case len(q.Body.Members) == 0:
		return "the body is no JSON object"
	case refusesPlain(q.Header.Values("Accept-Encoding")):
		return "an answer without Content-Encoding is not accepted"
	}
	for i, m := range q.Body.Members {
		switch {
		case strings.Trim(m.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-$.") != "":
			return "a field has a name that no provider knows"
		case slices.ContainsFunc(q.Body.Members[:i], func(before plugins.Member) bool { return before.Name == m.Name }):
			return m.Name + " stands twice"
		}
		unset := m.Value.Type == gjson.Null || m.Value.Type == gjson.False
		switch {
		case slices.Contains(acting, m.Name) && !unset:
			return m.Name + " does more than answer"
		case m.Value.IsObject() || m.Value.IsArray():
			if !slices.Contains(structures, m.Name) {
				return "what " + m.Name + " does is not known"
			}
		}
	}
	if model := strings.ToLower(q.Body.Get("model").Str + " " + q.Path); slices.ContainsFunc(searching, func(part string) bool { return strings.Contains(model, part) }) {
		return "the model searches the web for each answer"
	}
	store := q.Body.Get("store")
	switch state := bound.StateOf(q.Dialect, q.Body); {
	case store.Exists() && store.Type != gjson.False && store.Type != gjson.Null, q.Dialect == plugins.Responses && store.Type != gjson.False:
		return "the provider stores the answer; store has to be false"
	case state.Field != "" || len(state.IDs) > 0:
		return "the request names what the provider keeps"
	case !q.callsFunctionsAlone():
		return "only tools that the client runs are cached"
	}
	return ""
}

// contentRefusal says why the cache does not answer the request, as far as the content of its fields
// tells, "" if it may. Whoever refuses more changes the version of key: the table may know the request.
func (q *Request) contentRefusal() string {
	if d := bound.Of(q.Dialect, q.Body, nil); d.Hosted || d.Searches || d.Fetches() {
		return "the provider reads what the request only names"
	}
	return ""
}

// callsFunctionsAlone reports whether the client runs all tools of the request.
func (q *Request) callsFunctionsAlone() bool {
	tools := q.Body.Get("tools")
	function := func(gjson.Result) bool { return false }
	switch q.Dialect {
	case plugins.Chat, plugins.Responses:
		function = func(tool gjson.Result) bool { return tool.Get("type").Str == "function" }
	case plugins.Messages:
		function = func(tool gjson.Result) bool {
			kind := tool.Get("type")
			return !kind.Exists() || kind.Str == "custom"
		}
	case plugins.GenerateContent:
		function = only("functionDeclarations", "function_declarations")
	case plugins.Converse:
		tools, function = q.Body.Get("toolConfig.tools"), only("toolSpec", "cachePoint")
		if config := q.Body.Get("toolConfig"); config.Exists() {
			tools = config.Get("tools")
		}
	}
	all := true
	tools.ForEach(func(_, tool gjson.Result) bool {
		all = tool.IsObject() && function(tool)
		return all
	})
	return all && (!tools.Exists() || tools.IsArray() || tools.Type == gjson.Null)
}

// only returns a function that reports whether an object has no other fields.
func only(names ...string) func(gjson.Result) bool {
	return func(tool gjson.Result) bool {
		known := true
		tool.ForEach(func(name, _ gjson.Result) bool {
			known = slices.Contains(names, name.Str)
			return known
		})
		return known
	}
}

// refusesPlain reports whether Accept-Encoding forbids a body without an encoding (RFC 9110,
// section 12.5.3): a stored answer has none.
func refusesPlain(accept []string) bool {
	for part := range strings.SplitSeq(strings.ToLower(strings.Join(accept, ",")), ",") {
		coding, weight, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if (coding == "identity" || coding == "*") && strings.HasPrefix(weight, "q=0") && strings.Trim(weight[3:], ".0") == "" {
			return true
		}
	}
	return false
}
