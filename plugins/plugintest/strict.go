package plugintest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Strict is a provider that refuses what the vendor refuses. The types of fields are not
// checked here: test/compat holds them against the types that the vendors publish.
type Strict struct {
	// Vendor is a kind of provider, such as "mistral".
	Vendor string
	// Model is what is known of the model, nil for nothing.
	Model *plugins.Capabilities
}

// Handler answers 400 to the requests that the vendor refuses, and lets next answer the
// others.
func (s Strict) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = s.Refusal(r.URL.Path, body)
		}
		if err != nil {
			http.Error(w, fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, err), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// Refusal is why the vendor refuses a request to a path, nil if the vendor takes the
// request.
func (s Strict) Refusal(path string, body []byte) error {
	v := gjson.ParseBytes(body)
	converse := func(s Strict, v gjson.Result) error { return s.converse(path, v) }
	for _, format := range []struct {
		suffix string
		refuse func(Strict, gjson.Result) error
	}{
		{"/chat/completions", Strict.chat},
		{"/v2/chat", Strict.chat}, // Cohere's, whose conversations have the same members
		{"/responses", Strict.responses},
		{"/messages", Strict.messages},
		{"awPredict", Strict.messages},
		{"/converse", converse},
		{"/converse-stream", converse},
		{"enerateContent", Strict.generateContent},
	} {
		if strings.HasSuffix(path, format.suffix) {
			return format.refuse(s, v)
		}
	}
	return nil
}

// strictly fails the test if the vendor of a provider refuses the request that the provider
// made.
func strictly(t testing.TB, p translate.Provider, target translate.Target, req *http.Request, body string) {
	t.Helper()
	m, ok := p.(caddy.Module)
	if !ok {
		return
	}
	s := Strict{Vendor: m.CaddyModule().ID.Name(), Model: target.Capabilities}
	if err := s.Refusal(req.URL.Path, []byte(body)); err != nil {
		t.Errorf("%s refuses the request: %v\n%s", s.Vendor, err, body)
	}
}

// reasons reports whether the model is known to reason.
func (s Strict) reasons() bool { return s.Model != nil && s.Model.Reasoning }

// sampling refuses what reasoning models refuse
// (https://platform.openai.com/docs/guides/latest-model).
func (s Strict) sampling(v gjson.Result, effort string) error {
	for _, field := range []string{"temperature", "top_p"} {
		if value := v.Get(field); s.reasons() && !s.Model.Temperature && value.Exists() && value.Num != 1 {
			return fmt.Errorf("unsupported parameter: '%s' is not supported with this model", field)
		}
	}
	asked := v.Get(effort)
	switch {
	case !asked.Exists():
	case s.Model.Described() && !s.Model.Reasoning:
		return fmt.Errorf("unsupported parameter: '%s' is not supported with this model", effort)
	case s.Model != nil && len(s.Model.Efforts) > 0 && !slices.Contains(s.Model.Efforts, asked.Str):
		return fmt.Errorf("unsupported value: '%s' is not supported with the model, supported values are %q", asked.Str, s.Model.Efforts)
	}
	return nil
}

// responses has the rules of OpenAI's Responses, and of all who speak them
// (https://platform.openai.com/docs/api-reference/responses/create).
func (s Strict) responses(v gjson.Result) error {
	own := s.Vendor == "openai" || s.Vendor == "azure"
	if limit := v.Get("max_output_tokens"); own && limit.Type == gjson.Number && limit.Num < 16 {
		return errors.New("invalid 'max_output_tokens': integer below minimum value, expected a value >= 16")
	}
	for _, field := range []string{"stop", "seed", "top_k", "messages", "max_tokens", "thinking"} {
		if v.Get(field).Exists() {
			return fmt.Errorf("unknown parameter: '%s'", field)
		}
	}
	if own && len(v.Get("user").Str) > 64 {
		return errors.New("invalid 'user': string too long, expected a string with maximum length 64")
	}
	if s.Model.Described() && !s.Model.Reasoning && strings.Contains(v.Get("include").Raw, "encrypted") {
		return errors.New("encrypted content is not supported with this model")
	}
	for i, t := range v.Get("tools").Array() {
		if own && (t.Get("prompt_cache_breakpoint").Exists() || t.Get("cache_control").Exists()) {
			return fmt.Errorf("unknown parameter: a mark of a prefix to be cached at 'tools[%d]'", i)
		}
	}
	if err := s.toolGroups(v); err != nil {
		return err
	}
	if err := toolRoots(v.Get("tools"), "name", "parameters", own); err != nil {
		return err
	}
	if err := toolNames(v, `tools.#(type=="function")#.name`, `input.#(type=="function_call")#.name`, "tool_choice.name"); err != nil {
		return err
	}
	var calls pairs
	for i, item := range v.Get("input").Array() {
		at := fmt.Sprintf("input[%d]", i)
		if err := calls.item(at, item); err != nil {
			return err
		}
		role := item.Get("role").Str
		for j, part := range item.Get("content").Array() {
			kind := part.Get("type").Str
			isText := kind == "output_text" || kind == "refusal"
			if role != "" && part.IsObject() && isText != (role == "assistant") {
				return fmt.Errorf("%s.content[%d]: invalid value '%s' of the role '%s': "+
					"the assistant has 'output_text' and 'refusal', and nobody else has these", at, j, kind, role)
			}
		}
	}
	if err := calls.answered(); err != nil {
		return err
	}
	return s.sampling(v, "reasoning.effort")
}

// toolGroups refuses groups of tools that the vendor does not take, or the model: those of OpenAI and Azure
// search tools since gpt-5.4 (https://developers.openai.com/api/docs/guides/tools-tool-search).
func (s Strict) toolGroups(v gjson.Result) error {
	own := s.Vendor == "openai" || s.Vendor == "azure"
	for _, path := range []string{"tools", "input"} {
		for i, item := range v.Get(path).Array() {
			switch kind := item.Get("type").Str; kind {
			case "namespace", "additional_tools":
				if !own {
					return fmt.Errorf("invalid value: '%s' at '%s[%d].type'", kind, path, i)
				}
			case "tool_search", "tool_search_call", "tool_search_output":
				isClients := kind != "tool_search" || item.Get("execution").Str == "client"
				if !own || isClients && oldModel.MatchString(v.Get("model").Str) {
					return fmt.Errorf("'%s' at '%s[%d]' is not supported with this model", kind, path, i)
				}
			}
		}
	}
	return nil
}

var oldModel = regexp.MustCompile(`^(gpt-4|gpt-5(\.[0-3])?(-|$)|o[1-4])`)

// pairs are calls of tools, which need one output each.
type pairs struct {
	open []string // ids
	seen []string
}

func (p *pairs) call(id string) error {
	if id == "" || slices.Contains(p.seen, id) {
		return fmt.Errorf("the id '%s' of a call is not its own", id)
	}
	p.open, p.seen = append(p.open, id), append(p.seen, id)
	return nil
}

func (p *pairs) output(id string) error {
	i := slices.Index(p.open, id)
	if i < 0 {
		return fmt.Errorf("no tool call found for the output of '%s'", id)
	}
	p.open = slices.Delete(p.open, i, i+1)
	return nil
}

func (p *pairs) answered() error {
	if len(p.open) > 0 {
		return fmt.Errorf("no tool output found for the calls %q", p.open)
	}
	return nil
}

func (p *pairs) item(at string, item gjson.Result) error {
	id := item.Get("call_id").Str
	switch item.Get("type").Str {
	case "function_call", "custom_tool_call":
		if len(id) > 64 {
			return fmt.Errorf("invalid '%s.call_id': string too long, expected a string with maximum length 64", at)
		}
		return p.call(id)
	case "function_call_output", "custom_tool_call_output":
		return p.output(id)
	}
	return nil
}

// toolNames refuses names of tools, at these paths, that all but Anthropic refuse
// (https://platform.openai.com/docs/api-reference/chat/create).
func toolNames(v gjson.Result, paths ...string) error {
	for _, path := range paths {
		for _, name := range v.Get(path).Array() {
			if !shortName.MatchString(name.String()) {
				return fmt.Errorf("%s: the name '%s' should match pattern '%s'", path, name, shortName)
			}
		}
	}
	return nil
}

var shortName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

var firstLetter = regexp.MustCompile(`^[a-zA-Z_]`)

var nineLetters = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

// toolRoots refuses tools of the same name, and parameters with alternatives at their root.
func toolRoots(tools gjson.Result, name, schema string, roots bool) error {
	seen := make(map[string]bool)
	for i, t := range tools.Array() {
		switch n := t.Get(name).Str; {
		case n == "":
			continue
		case seen[n]:
			return fmt.Errorf("tools[%d]: Tool names must be unique", i)
		default:
			seen[n] = true
		}
		for _, keyword := range []string{"oneOf", "anyOf", "allOf"} {
			if roots && t.Get(schema).Get(keyword).Exists() {
				return fmt.Errorf("tools[%d]: the schema does not support oneOf, allOf, or anyOf at the top level", i)
			}
		}
	}
	return nil
}

// chat has the rules of Chat Completions, and those of its vendors.
func (s Strict) chat(v gjson.Result) error {
	if s.Vendor == "fireworks" && len(v.Get("messages.#.refusal").Array()) > 0 {
		return errors.New("extra inputs are not permitted, field: 'messages.refusal'")
	}
	if err := toolNames(v, "tools.#.function.name", "tools.#.custom.name", "tool_choice.function.name", "messages.#.tool_calls.#.function.name|@flatten"); err != nil {
		return err
	}
	if err := toolRoots(v.Get("tools"), "function.name", "function.parameters", s.Vendor == "openai" || s.Vendor == "azure"); err != nil {
		return err
	}
	var calls pairs
	messages := v.Get("messages").Array()
	if m := v.Get("messages"); m.Exists() && len(messages) == 0 {
		return errors.New("messages: at least one message is required")
	}
	for i, m := range messages {
		role, id := m.Get("role").Str, m.Get("tool_call_id").Str
		if content := m.Get("content"); content.Type != gjson.String && len(content.Array()) == 0 && len(m.Get("tool_calls").Array()) == 0 && !m.Get("function_call").Exists() {
			return fmt.Errorf("messages[%d]: Invalid value for 'content': expected a string, got null", i)
		}
		if role == "tool" {
			if err := calls.output(id); err != nil {
				return fmt.Errorf("messages[%d]: %w", i, err)
			}
		} else if err := calls.answered(); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		for _, call := range chatCalls(m) {
			if err := calls.call(call.Get("id").Str); err != nil {
				return fmt.Errorf("messages[%d]: %w", i, err)
			}
		}
	}
	for _, field := range []string{"tool_choice", "parallel_tool_calls"} {
		if v.Get(field).Exists() && len(v.Get("tools").Array()) == 0 {
			return fmt.Errorf("'%s' is only allowed when 'tools' are specified", field)
		}
	}
	if err := s.stops(v.Get("stop")); err != nil {
		return err
	}
	refuse := map[string]func(gjson.Result) error{
		"openai": s.openAIChat, "azure": s.openAIChat, "mistral": mistralChat, "ollama": ollamaChat,
		"vllm": alternating, "lmstudio": lmstudioChat, "compatible": alternating,
		"deepseek": deepseekChat, "groq": formatOrTools, "cerebras": formatOrTools,
	}[s.Vendor]
	if refuse != nil {
		if err := refuse(v); err != nil {
			return err
		}
	}
	return calls.answered()
}

// stops refuses more stop sequences than the vendor takes, and any at models that reason
// (https://platform.openai.com/docs/api-reference/chat/create, https://docs.x.ai/docs/guides/reasoning).
func (s Strict) stops(stop gjson.Result) error {
	switch n := len(stop.Array()); {
	case n > 4 && slices.Contains([]string{"openai", "azure", "groq", "cerebras"}, s.Vendor):
		return fmt.Errorf("invalid 'stop': array too long, expected an array with maximum length 4, but got one with length %d", n)
	case n > 0 && s.reasons() && slices.Contains([]string{"openai", "azure", "xai"}, s.Vendor):
		return errors.New("unsupported parameter: 'stop' is not supported with this model")
	}
	return nil
}

// openAIChat has the rules of OpenAI's Chat Completions
// (https://platform.openai.com/docs/api-reference/chat/create).
func (s Strict) openAIChat(v gjson.Result) error {
	if s.reasons() && v.Get("max_tokens").Exists() {
		return errors.New("unsupported parameter: 'max_tokens' is not supported with this model, use 'max_completion_tokens' instead")
	}
	for _, id := range v.Get("messages.#.tool_calls.#.id|@flatten").Array() {
		if len(id.Str) > 40 {
			return fmt.Errorf("invalid id '%s' of a call: string too long, expected a string with maximum length 40", id.Str)
		}
	}
	return s.sampling(v, "reasoning_effort")
}

// mistralFollows are the roles that Mistral takes after a role
// (https://github.com/mistralai/mistral-common, validator.py).
var mistralFollows = map[string][]string{
	"":          {"system", "user", "assistant"},
	"system":    {"system", "user", "assistant"},
	"user":      {"system", "user", "assistant"},
	"assistant": {"user", "assistant", "tool"},
	"tool":      {"assistant", "tool"},
}

// mistralChat has the rules of Mistral (https://docs.mistral.ai/api/endpoint/chat).
func mistralChat(v gjson.Result) error {
	for _, field := range []string{"stream_options", "max_completion_tokens", "user", "logprobs", "top_logprobs", "store", "seed"} {
		if v.Get(field).Exists() {
			return fmt.Errorf("%s: extra inputs are not permitted", field)
		}
	}
	if v.Get("temperature").Num > 1.5 {
		return errors.New("temperature: input should be less than or equal to 1.5")
	}
	last := ""
	for i, m := range v.Get("messages").Array() {
		role := m.Get("role").Str
		if !slices.Contains(mistralFollows[last], role) {
			return fmt.Errorf("messages[%d]: unexpected role '%s' after role '%s'", i, role, last)
		}
		for _, call := range chatCalls(m) {
			if id := call.Get("id").Str; !nineLetters.MatchString(id) {
				return fmt.Errorf("tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9", id)
			}
		}
		if last = role; m.Get("prefix").Bool() {
			last = "prefix"
		}
	}
	if last != "user" && last != "tool" && last != "prefix" {
		return fmt.Errorf("expected last role User or Tool (or Assistant with prefix True) for serving but got %s", last)
	}
	return nil
}

// deepseekChat has the rules of DeepSeek (https://api-docs.deepseek.com/guides/json_mode).
func deepseekChat(v gjson.Result) error {
	if v.Get("response_format.type").Str == "json_schema" {
		return errors.New("this response_format type is unavailable now")
	}
	return nil
}

// formatOrTools has the rules of Groq and Cerebras
// (https://console.groq.com/docs/structured-outputs).
func formatOrTools(v gjson.Result) error {
	if format := v.Get("response_format.type").Str; format != "" && format != "text" && len(v.Get("tools").Array()) > 0 {
		return errors.New("json mode cannot be combined with tool/function calling")
	}
	for i, m := range v.Get("messages").Array() {
		if m.Get("reasoning_content").Exists() {
			return fmt.Errorf("'messages.%d': property 'reasoning_content' is unsupported", i)
		}
	}
	return nil
}

// lmstudioChat has the rules of LM Studio (https://lmstudio.ai/docs/developer/openai-compat).
func lmstudioChat(v gjson.Result) error {
	switch {
	case v.Get("tool_choice").IsObject():
		return errors.New("invalid tool_choice type: 'object'. Supported string values: none, auto, required")
	case v.Get("response_format.type").Str == "json_object":
		return errors.New("'response_format.type' must be 'json_schema' or 'text'")
	}
	return alternating(v)
}

// ollamaChat has the rules of Ollama, which fetches no images
// (https://docs.ollama.com/api/openai-compatibility).
func ollamaChat(v gjson.Result) error {
	for _, url := range v.Get("messages.#.content.#.image_url.url|@flatten").Array() {
		if !strings.HasPrefix(url.Str, "data:") {
			return errors.New("invalid image input")
		}
	}
	return nil
}

// alternating has the rules of the chat templates of many open models.
func alternating(v gjson.Result) error {
	if err := toolRoots(v.Get("toolConfig.tools"), "toolSpec.name", "toolSpec.inputSchema.json", true); err != nil {
		return err
	}
	last := "assistant"
	for i, m := range v.Get("messages").Array() {
		switch role := m.Get("role").Str; {
		case role == "system" && i > 0:
			return errors.New("the system message must be at the beginning")
		case role == "user" && last == "user":
			return errors.New("conversation roles must alternate user/assistant/user/assistant")
		case role != "system":
			last = role
		}
	}
	return nil
}

// wordID is what Anthropic takes for the id of a call, and wordName for the name of a tool.
var (
	wordID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	wordName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
)

// messages has the rules of Anthropic's Messages
// (https://platform.claude.com/docs/en/api/messages).
func (Strict) messages(v gjson.Result) error {
	limit, budget := v.Get("max_tokens"), v.Get("thinking.budget_tokens")
	choice, thinks := v.Get("tool_choice.type").Str, slices.Contains([]string{"enabled", "adaptive"}, v.Get("thinking.type").Str)
	switch {
	case limit.Num < 1:
		return errors.New("max_tokens: Input should be greater than or equal to 1")
	case budget.Exists() && budget.Num < 1024:
		return errors.New("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case budget.Exists() && budget.Num >= limit.Num:
		return errors.New("`max_tokens` must be greater than `thinking.budget_tokens`")
	case v.Get("temperature").Num > 1:
		return errors.New("temperature: range: 0..1")
	case thinks && v.Get("temperature").Exists() && v.Get("temperature").Num != 1:
		return errors.New("`temperature` may only be set to 1 when thinking is enabled")
	case thinks && (choice == "any" || choice == "tool"):
		return errors.New("thinking may not be enabled when tool_choice forces tool use")
	case choice != "" && len(v.Get("tools").Array()) == 0:
		return errors.New("tool_choice may only be specified while providing tools")
	}
	for _, stop := range v.Get("stop_sequences").Array() {
		if strings.TrimSpace(stop.Str) == "" {
			return errors.New("stop_sequences: each stop sequence must contain non-whitespace")
		}
	}
	for _, t := range v.Get("tools").Array() {
		if !wordName.MatchString(t.Get("name").Str) {
			return fmt.Errorf("tools: the name '%s' should match pattern", t.Get("name").Str)
		}
	}
	messages := v.Get("messages").Array()
	if n := len(messages); n > 0 && messages[n-1].Get("role").Str == "assistant" && strings.Contains(v.Get("model").Str, "claude") {
		last := messages[n-1].Get("content")
		if blocks := last.Array(); last.IsArray() && len(blocks) > 0 {
			last = blocks[len(blocks)-1].Get("text")
		}
		if last.Str != strings.TrimRight(last.Str, " \n\t") {
			return errors.New("messages: final assistant content cannot end with trailing whitespace")
		}
	}
	if err := toolRoots(v.Get("tools"), "name", "input_schema", true); err != nil {
		return err
	}
	return turns(messages, func(block gjson.Result) (call, output string) {
		if block.Get("type").Str == "tool_use" {
			return block.Get("id").Str, ""
		}
		return "", block.Get("tool_use_id").Str
	})
}

// converse has the rules of Bedrock's Converse
// (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html). The path has
// the model.
func (Strict) converse(path string, v gjson.Result) error {
	if marks := v.Get("toolConfig.tools.#.cachePoint"); strings.Contains(path, "amazon.nova") && len(marks.Array()) > 0 {
		return errors.New("#/toolConfig/tools: extraneous key [cachePoint] is not permitted")
	}
	if err := toolNames(v, "toolConfig.tools.#.toolSpec.name", "toolConfig.toolChoice.tool.name", "messages.#.content.#.toolUse.name|@flatten"); err != nil {
		return err
	}
	last := "assistant"
	for i, m := range v.Get("messages").Array() {
		if m.Get("role").Str == last {
			return fmt.Errorf("messages[%d]: a conversation must alternate between user and assistant roles, and start with a user message", i)
		}
		last = m.Get("role").Str
	}
	return turns(v.Get("messages").Array(), func(block gjson.Result) (call, output string) {
		return block.Get("toolUse.toolUseId").Str, block.Get("toolResult.toolUseId").Str
	})
}

// turns refuses a conversation in which a blank text is said, or calls are not answered by
// the message that follows them. ids returns the id of the call or output that a block is.
func turns(messages []gjson.Result, ids func(block gjson.Result) (call, output string)) error {
	if len(messages) == 0 || messages[0].Get("role").Str != "user" {
		return errors.New("messages: the first message must use the user role")
	}
	var calls pairs
	for i, m := range messages {
		for _, block := range m.Get("content").Array() {
			if text := block.Get("text"); text.Exists() && strings.TrimSpace(text.Str) == "" {
				return fmt.Errorf("messages[%d]: text content blocks must contain non-whitespace text", i)
			}
			for _, part := range append(block.Get("content").Array(), block.Get("toolResult.content").Array()...) { // of an output
				if text := part.Get("text"); text.Exists() && strings.TrimSpace(text.Str) == "" {
					return fmt.Errorf("messages[%d]: text content blocks of a tool result must be non-empty", i)
				}
			}
			if _, output := ids(block); output != "" && !strings.HasPrefix(output, "srvtoolu_") {
				if err := calls.output(output); err != nil {
					return fmt.Errorf("messages[%d]: %w", i, err)
				}
			}
		}
		if err := calls.answered(); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		for _, block := range m.Get("content").Array() {
			call, _ := ids(block)
			switch {
			case call == "":
			case m.Get("role").Str != "assistant" || !wordID.MatchString(call):
				return fmt.Errorf("messages[%d]: the id '%s' of a call should match pattern '%s'", i, call, wordID)
			default:
				if err := calls.call(call); err != nil {
					return err
				}
			}
		}
	}
	return calls.answered()
}

// geminiSchema has Gemini's rules of schemas (https://ai.google.dev/api/caching#FunctionDeclaration).
func geminiSchema(schema gjson.Result) (err error) {
	schema.ForEach(func(key, v gjson.Result) bool {
		switch name := key.Str; {
		case name == "allOf" || name == "const":
			err = fmt.Errorf("unknown name %q in a schema", name)
		case name == "enum":
			for _, value := range v.Array() {
				if value.Type != gjson.String && value.Type != gjson.Number {
					err = fmt.Errorf("invalid value %s in an enum", value.Raw)
				}
			}
		case name == "properties" || name == "$defs":
			v.ForEach(func(name, property gjson.Result) bool {
				if property.Type == gjson.True {
					err = fmt.Errorf("invalid value true at the property '%s'", name.Str)
				} else {
					err = geminiSchema(property)
				}
				return err == nil
			})
		case v.IsObject() && (name == "items" || name == "additionalProperties"):
			err = geminiSchema(v)
		case strings.HasSuffix(name, "Of"):
			for _, part := range v.Array() {
				if err == nil {
					err = geminiSchema(part)
				}
			}
		}
		return err == nil
	})
	return err
}

// generateContent has the rules of Gemini (https://ai.google.dev/api/generate-content).
func (Strict) generateContent(v gjson.Result) error {
	if err := toolNames(v, "tools.#.functionDeclarations.#.name|@flatten", "contents.#.parts.#.functionCall.name|@flatten"); err != nil {
		return err
	}
	for _, d := range v.Get("tools.#.functionDeclarations.#.name|@flatten").Array() {
		if !firstLetter.MatchString(d.Str) {
			return fmt.Errorf("the name '%s': Function name must start with a letter or an underscore", d.Str)
		}
	}
	if err := toolRoots(v.Get("tools.#.functionDeclarations|@flatten"), "name", "parameters", false); err != nil {
		return err
	}
	for _, schema := range append(v.Get("tools.#.functionDeclarations.#.parametersJsonSchema|@flatten").Array(), v.Get("generationConfig.responseJsonSchema")) {
		if err := geminiSchema(schema); err != nil {
			return err
		}
	}
	if len(v.Get("generationConfig.stopSequences").Array()) > 5 {
		return errors.New("generationConfig.stopSequences: at most 5 are allowed")
	}
	contents := v.Get("contents").Array()
	if len(contents) == 0 {
		return errors.New("* GenerateContentRequest.contents: contents is not specified")
	}
	calls := 0
	for i, c := range contents {
		if n := len(c.Get("parts").Array()); n == 0 {
			return fmt.Errorf("* GenerateContentRequest.contents[%d].parts: must not be empty", i)
		}
		for _, part := range c.Get("parts").Array() {
			if text := part.Get("text"); part.Raw == "{}" || text.Exists() && text.Str == "" && !part.Get("thoughtSignature").Exists() {
				return fmt.Errorf("contents[%d]: Unable to submit request because it has an empty text parameter", i)
			}
		}
		outputs := len(c.Get("parts.#.functionResponse").Array())
		if outputs != calls {
			return fmt.Errorf("contents[%d]: the number of function response parts must be equal to the number of function call parts of the function call turn", i)
		}
		calls = len(c.Get("parts.#.functionCall").Array())
	}
	return nil
}
