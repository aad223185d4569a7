package bound

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// What vendors state of their APIs, and the catalogue does not have.

const (
	// toolTokens are what a host of Claude writes around the tools of a request
	// (https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview#pricing).
	toolTokens = 1024
	// PictureTokens are those of the largest picture that a model reads, and
	// pictureTokens4oMini those of the one model that counts them higher
	// (https://platform.openai.com/docs/guides/images-vision#calculating-costs).
	PictureTokens       = 12_000
	pictureTokens4oMini = 48_200
	// ImageTokens are the tokens of the largest image of the best quality that OpenAI makes,
	// and of the three partial images that a stream may have before the image
	// (https://platform.openai.com/docs/guides/image-generation).
	ImageTokens = 6240 + 3*100
	// imageModel is the model that makes images for others at OpenAI, unless a request names one.
	imageModel = "gpt-image-1"
	// hostedCalls is how often a provider calls a tool that it hosts, if the request does
	// not say (https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons#pause-turn).
	hostedCalls = 10
	// maxCalls bounds the calls of hosted tools, if the request allows more: the results of so
	// many do not fit into what a model reads.
	maxCalls = 10_000
	// maxUnknown bounds how many unknown options of a request are named in the log.
	maxUnknown = 8
)

// hostsOfGemini are the providers that may take a picture of an address for anything else that
// they fetch, such as a video (https://ai.google.dev/gemini-api/docs/video-understanding).
var hostsOfGemini = []string{"gemini", "vertex"}

// hostsOfClaude are the providers that write their cache only where a request says so. At
// others, such as OpenAI, each request may write it.
var hostsOfClaude = []string{"anthropic", "bedrock", "vertex"}

// fetchingProviders let a request fetch what it names by options of their own
// (https://openrouter.ai/docs/guides/features/plugins,
// https://docs.perplexity.ai/api-reference/chat-completions-post).
var fetchingProviders = []string{"openrouter", "perplexity"}

// fetchingWords are the parts of names of options by which a provider fetches, restores or runs
// something, such as Azure's data_sources and Anthropic's mcp_servers.
var fetchingWords = []string{
	"agent", "connector", "container", "context", "conversation", "corpus", "document", "environment", "extra_body", "fetch", "file", "ground",
	"knowledge", "mcp", "memory", "plugin", "rag", "retriev", "search", "session", "skill", "source", "store", "thread", "url",
}

// fetches reports whether an option makes a provider fetch something, by its name.
func fetches(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(fetchingWords, func(word string) bool { return strings.Contains(name, word) })
}

// namesFetched reports whether the value of an option names what a provider may fetch: by an
// address, or by the name of a field.
func namesFetched(v gjson.Result, depth int) (found bool) {
	if v.Type != gjson.JSON {
		return strings.Contains(v.Str, "://")
	}
	if depth == maxOptionDepth {
		return true
	}
	v.ForEach(func(key, field gjson.Result) bool {
		found = fetches(key.Str) || namesFetched(field, depth+1)
		return !found
	})
	return found
}

// maxOptionDepth is how deep the value of an unknown option is read.
const maxOptionDepth = 8

// agentsField is the option by which one call of Responses runs several agents, without a limit of how
// many (https://developers.openai.com/api/docs/guides/responses-multi-agent).
const agentsField = "multi_agent"

// agentModels are parts of the names of models that run several agents for each answer, of which all
// read and write what is billed (https://docs.x.ai/developers/models/grok-4.20-multi-agent).
var agentModels = []string{"multi-agent"}

func runsAgents(m *catalog.Model) bool {
	return slices.ContainsFunc(agentModels, func(part string) bool { return strings.Contains(m.ID, part) })
}

// searchModels are parts of the names of models that search the web for each answer
// (https://platform.openai.com/docs/guides/tools-web-search?api-mode=chat).
var searchModels = []string{"-search-preview", "-search-api"}

// clientTools are the types of tools that the client runs, or that need nothing but the request.
var clientTools = []string{
	"apply_patch", "bash", "computer", "computer_use", "computer_use_preview", "custom", "function", "local_shell", "memory", "namespace",
	"shell", "text_editor", "tool_search", "tool_search_tool_bm25", "tool_search_tool_regex",
}

// dateSuffix is the date at the end of Anthropic's types of tools, as in bash_20250124.
var dateSuffix = regexp.MustCompile(`_20\d{6}$`)

// runsAtClient reports whether the client runs a tool of a type. A shell runs where its
// environment says (https://developers.openai.com/api/docs/guides/tools-shell).
func runsAtClient(kind string, tool gjson.Result) (client bool) {
	if !slices.Contains(clientTools, dateSuffix.ReplaceAllString(kind, "")) {
		return false
	}
	client = true
	tool.ForEach(func(key, v gjson.Result) bool { // libraries differ in which of two they take
		if key.Str == "environment" && v.Type != gjson.Null {
			client = client && everyField(v, "type", "local")
		}
		return true
	})
	return client
}

// everyField reports whether an object has a field, and each time with the value.
func everyField(object gjson.Result, name, value string) (ok bool) {
	found := false
	ok = true
	object.ForEach(func(key, v gjson.Result) bool {
		if key.Str == name {
			found, ok = true, ok && v.Str == value
		}
		return true
	})
	return found && ok
}

// callPrices is what a call of a hosted tool costs beside tokens, by its type
// (https://openai.com/api/pricing#tools, https://groq.com/pricing).
var callPrices = map[string]plugins.Nanodollars{
	"file_search":    2_500_000,
	"browser_search": 8_000_000,
	"visit_website":  1_000_000,
}

// containerPrices is what a container costs, by its memory_limit. The dearest counts for a limit
// that is not known (https://openai.com/api/pricing#tools).
var containerPrices = map[string]plugins.Nanodollars{"": 30_000_000, "1g": 30_000_000, "4g": 120_000_000, "16g": 480_000_000, "64g": 1_920_000_000}

// containerTools are the types of tools that run in a container of the provider. Anthropic and
// Groq charge theirs by the hour, at less than OpenAI's smallest for the time of a call.
var containerTools = []string{"code_execution", "code_interpreter", "shell"}

// containerPrice is what the container of a tool costs, 0 if the tool has none.
func containerPrice(kind string, tool gjson.Result) (price plugins.Nanodollars) {
	if !slices.Contains(containerTools, dateSuffix.ReplaceAllString(kind, "")) {
		return 0
	}
	price = containerPrices[""]
	tool.ForEach(func(key, v gjson.Result) bool {
		if key.Str != "container" && key.Str != "environment" {
			return true
		}
		v.ForEach(func(key, limit gjson.Result) bool {
			if key.Str == "memory_limit" && limit.Type != gjson.Null {
				of, known := containerPrices[limit.Str]
				if !known {
					of = containerPrices["64g"]
				}
				price = max(price, of)
			}
			return true
		})
		return true
	})
	return price
}
