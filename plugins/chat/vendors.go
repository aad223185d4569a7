package chat

import (
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/translate"
)

// vendor is how one vendor's Chat Completions differ from what most of them do.
type vendor struct {
	name string // the kind of provider

	// policy says what the vendor has equivalents for, beyond common.
	policy translate.Policy
	// endpoints are the other endpoints of OpenAI, and Cohere's rerank, that the vendor's
	// documentation lists. Nil means all: a server that runs any models may have them.
	endpoints []string

	messages messageRules
	tools    toolRules

	// completionTokens: the limit is "max_completion_tokens", not "max_tokens".
	completionTokens bool
	// limits are the limits of the vendor's models.
	limits translate.Limits
	// closed: the vendor refuses unknown fields, those that only OpenAI has among them, and states
	// the usage of streams unasked.
	closed bool

	// effort is how requests have the effort of reasoning. efforts are the levels of models
	// whose levels the catalogue does not have.
	effort  effortForm
	efforts []string
	// replays: requests repeat reasoning in the field of the answer, for all models.
	replays bool

	// repeatsReasoning: a model that thinks refuses a request with tools in which an earlier call
	// is without the reasoning that led to it (https://api-docs.deepseek.com/guides/thinking_mode).
	repeatsReasoning bool
	// thinksUnforced: a model that thinks refuses a request that makes it call a tool
	// (https://github.com/tickernelz/opencode-mem/issues/253).
	thinksUnforced bool

	// maxStops is how many stop sequences a request may have, 0 for any number.
	maxStops int
	// reasonsUnstopped: models that reason take no stop sequences
	// (https://github.com/OpenHands/software-agent-sdk/issues/1062).
	reasonsUnstopped bool

	// format says which response formats the vendor takes. formatOrTools: a request with
	// tools can have no format.
	format        formatSupport
	formatOrTools bool
	// ownReasoning: messages that have their reasoning in "reasoning_content" are refused.
	ownReasoning bool
}

// messageRules are how a vendor takes messages.
type messageRules struct {
	// developer: messages of the system have the role of a developer with reasoning models.
	developer bool
	// systemOnly: messages with the role of a developer are refused.
	systemOnly bool
	// alternate: after one system message, user and assistant take turns, as many chat
	// templates demand.
	alternate bool
	// answers: an assistant's message stands between outputs and the user, and the last
	// message is of the user or a tool (https://docs.mistral.ai/api/endpoint/chat).
	answers bool
	// file is the form of input_file.
	file fileForm
	// cacheMarks: parts of messages have the client's marks of prefixes to be cached
	// (https://openrouter.ai/docs/features/prompt-caching).
	cacheMarks bool
	// bareAnswers: messages are refused that have, as null, what OpenAI's answers have besides
	// (https://github.com/anomalyco/opencode/issues/43467).
	bareAnswers bool
	// inlineImages: images have no URLs, for the vendor fetches none.
	inlineImages bool
	// bareAudio: audio is base64 alone, without its format.
	bareAudio bool
}

// toolRules are how a vendor takes tools and their calls.
type toolRules struct {
	// tools says which tools the vendor takes.
	tools toolSupport
	// anyTool is the value of a choice that requires a call.
	anyTool string
	// customTools: tools may have free-form input.
	customTools bool
	// calls are what the vendor takes of names and ids.
	calls translate.CallRules
	// hostsInResponses are the types of the tools that the vendor hosts in its Responses API.
	// Requests with such tools go there.
	hostsInResponses []string
	// search is how the vendor searches the web.
	search searchForm
}

type effortForm uint8

const (
	reasoningEffort  effortForm = iota // "reasoning_effort"
	reasoningObject                    // "reasoning": {"effort"}
	thinkingSwitch                     // "thinking": {"type"}, and "reasoning_effort" if the model has levels
	templateThinking                   // "reasoning_effort", and a switch for the chat template
)

type formatSupport uint8

const (
	allFormats formatSupport = iota
	schemaOnly
	objectOnly
)

type toolSupport uint8

const (
	allTools   toolSupport = iota
	freeChoice             // the model can't be made to call: an instruction asks it
	wordChoice             // a choice of one tool can't be said: the others are left out
)

type fileForm uint8

const (
	noFile      fileForm = iota
	openAIFile           // inline, or uploaded
	inlineFile           // inline, or by URL in its place
	documentURL          // a URL, which may be a data: URL
)

type searchForm uint8

const (
	noSearch      searchForm = iota
	searchOptions            // OpenAI's models that search
	searchPlugin             // a plugin beside the model
)

// common is what all vendors take, with exceptions in the table.
var common = translate.DefaultPolicy.Translating(
	"frequency_penalty", "presence_penalty", "reasoning.effort",
	"input.input_image",
)

// parallel is the policy of a vendor whose requests can forbid parallel calls.
var parallel = translate.Policy{}.Translating("parallel_tool_calls")

// ranked is the policy of a vendor whose requests can limit sampling to the likeliest tokens.
var ranked = translate.Policy{}.Translating("top_k")

// withoutPenalties is the policy of Groq and, with logprobs, of Cerebras.
var withoutPenalties = parallel.With(translate.Policy{
	"frequency_penalty": translate.Warn,
	"presence_penalty":  translate.Warn,
	"user":              translate.Translate,
})

// logprobs is the policy of a vendor that returns logprobs.
var logprobs = translate.Policy{}.Translating("top_logprobs", "include.message.output_text.logprobs")

// openAI is what OpenAI has beyond common.
var openAI = parallel.With(logprobs).Translating(
	"metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
	"service_tier", "store", "text.verbosity", "user",
	"input.input_audio", "input.input_file",
)

var (
	threeLevels = []string{"low", "medium", "high"}
	fourLevels  = []string{"none", "low", "medium", "high"}
	allLevels   = openai.Efforts
)

// chatLimits are those of OpenAI's models in Chat Completions, where any number of tokens
// can be asked for.
var chatLimits = translate.Limits{User: openai.Limits.User}

// vendors are the kinds of providers, by their own documentation.
var vendors = []vendor{
	{
		name:             "openai",
		policy:           openAI.With(translate.WebSearch),
		messages:         messageRules{developer: true, file: openAIFile},
		tools:            toolRules{customTools: true, calls: translate.CallRules{ID: 40, OneObject: true}, search: searchOptions},
		completionTokens: true, efforts: allLevels, limits: chatLimits, maxStops: 4, reasonsUnstopped: true,
	},
	{
		name:   "azure",
		policy: openAI,
		endpoints: []string{
			"embeddings", "completions", "images/generations", "images/edits",
			"audio/transcriptions", "audio/translations", "audio/speech", "files", "batches", "realtime",
		},
		messages:         messageRules{developer: true, file: openAIFile},
		tools:            toolRules{calls: translate.CallRules{ID: 40, OneObject: true}},
		completionTokens: true, efforts: allLevels, limits: chatLimits, maxStops: 4, reasonsUnstopped: true,
	},
	{
		name: "mistral",
		policy: parallel.Translating(
			"prompt_cache_key", "service_tier",
			"input.input_audio", "input.input_file",
		),
		endpoints: []string{"embeddings", "audio/transcriptions", "audio/speech", "moderations", "files"},
		messages:  messageRules{systemOnly: true, answers: true, file: documentURL, bareAudio: true},
		tools:     toolRules{anyTool: "any", calls: translate.CallRules{ID: 9, Exact: true}},
		limits:    translate.Limits{Temperature: 1.5}, closed: true,
	},
	{
		name:             "groq",
		policy:           withoutPenalties,
		endpoints:        []string{"audio/transcriptions", "audio/translations", "audio/speech", "files", "batches"},
		completionTokens: true, efforts: threeLevels, replays: true, formatOrTools: true, ownReasoning: true, maxStops: 4,
	},
	{
		// https://github.com/theopenco/llmgateway/pull/3462
		name:      "deepseek",
		policy:    logprobs,
		endpoints: []string{},
		messages:  messageRules{systemOnly: true},
		effort:    thinkingSwitch, repeatsReasoning: true, thinksUnforced: true, format: objectOnly,
	},
	{
		name:             "xai",
		policy:           parallel.With(logprobs).Translating("user"),
		endpoints:        []string{"images/generations", "images/edits", "files"},
		tools:            toolRules{hostsInResponses: []string{"web_search", "x_search", "code_interpreter", "file_search", "mcp"}},
		completionTokens: true, limits: translate.Limits{Unpenalized: true}, reasonsUnstopped: true,
	},
	{
		name:      "together",
		policy:    ranked,
		endpoints: []string{"embeddings", "completions", "images/generations", "audio/transcriptions", "audio/translations", "audio/speech", "rerank"},
		efforts:   threeLevels,
	},
	{
		name:      "fireworks",
		policy:    logprobs.With(ranked).Translating("user"),
		endpoints: []string{"embeddings", "completions", "rerank"},
		messages:  messageRules{bareAnswers: true},
		efforts:   fourLevels,
	},
	{
		name: "openrouter",
		policy: parallel.With(logprobs).With(ranked).With(translate.WebSearch).Translating(
			"text.verbosity", "user",
			"input.input_audio", "input.input_file",
		),
		endpoints: []string{"embeddings", "completions", "images/generations", "audio/transcriptions", "audio/speech", "rerank"},
		messages:  messageRules{file: inlineFile, cacheMarks: true},
		tools:     toolRules{search: searchPlugin},
		effort:    reasoningObject, efforts: allLevels, replays: true,
	},
	{
		name:    "vercel",
		policy:  parallel.With(logprobs).Translating("user", "input.input_audio"),
		efforts: allLevels,
	},
	{
		name:             "cerebras",
		policy:           withoutPenalties.With(logprobs),
		endpoints:        []string{"completions"},
		completionTokens: true, efforts: threeLevels, replays: true, formatOrTools: true, ownReasoning: true, maxStops: 4,
	},
	{
		name:      "ollama",
		endpoints: []string{"embeddings", "completions"},
		messages:  messageRules{inlineImages: true},
		tools:     toolRules{tools: freeChoice},
		efforts:   fourLevels, replays: true,
	},
	{
		name:      "vllm",
		policy:    parallel.With(logprobs).With(ranked).Translating("input.input_audio"),
		endpoints: []string{"embeddings", "completions", "audio/transcriptions", "audio/translations", "rerank"},
		messages:  messageRules{alternate: true},
		effort:    templateThinking, efforts: fourLevels, replays: true,
	},
	{
		name:      "lmstudio",
		policy:    ranked,
		endpoints: []string{"embeddings", "completions"},
		messages:  messageRules{alternate: true},
		tools:     toolRules{tools: wordChoice},
		efforts:   threeLevels, format: schemaOnly,
	},
	{
		name:     "compatible",
		policy:   parallel.With(logprobs).Translating("user", "input.input_audio"),
		messages: messageRules{alternate: true},
		efforts:  allLevels,
	},
}

func init() {
	for i := range vendors {
		vendors[i].policy = common.With(vendors[i].policy)
	}
}

// translates reports whether the vendor gets the field. A vendor that lacks the field does
// not get a default of it either.
func (v *vendor) translates(field string) bool { return v.policy[field] == translate.Translate }
