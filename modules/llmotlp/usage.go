package llmotlp

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// outputNames have the answer of the provider as it was, or nearly.
var outputNames = []string{"output.value", "response_data", "genkit:output", "mlflow.spanOutputs", observation + "output", "gen_ai.completion", "llm.response.raw"}

// rawUsageNames have the provider's own report of the usage.
var rawUsageNames = []string{"gen_ai.usage.raw", "langsmith.metadata.usage_metadata", "mastra.usage.raw"}

// usage returns the usage that the span reports, in the convention of plugins.Usage and of
// OpenTelemetry: cached tokens are a part of the input, and reasoning of the output. The
// provider's own report counts, if the span has it, and what the provider left out is taken from
// the attributes.
func (c *call) usage() plugins.Usage {
	counts := c.counts()
	u := counts.usage(c.excludesCache())
	if stated := c.providerUsage(); stated != (plugins.Usage{}) {
		if c.excludesCache() && stated.Output.N < u.Output.N {
			stated.Output = u.Output // AI SDK 5 has the usage with which Anthropic began the stream (vercel/ai#8795)
		}
		u.Merge(stated)
	} else {
		u.Merge(c.observationUsage())
	}
	if cached := u.CacheRead.Plus(u.CacheWrite); u.Input.Valid && cached.N > u.Input.N {
		u.Input = u.Input.Plus(cached)
	}
	if c.dialect == plugins.Embeddings {
		u.Input = u.Input.Or(counts[total]) // there is nothing else that could have cost tokens
		if u.Input.Valid {
			u.Output = u.Output.Or(plugins.Known(0))
		}
	}
	return u
}

// providerUsage reads the report of the provider itself, which some conventions have beside
// their own counts.
func (c *call) providerUsage() (u plugins.Usage) {
	read := func(v gjson.Result) bool {
		if v.IsObject() {
			u = readUsage(v)
		}
		return u.Input.Valid || u.Output.Valid
	}
	for _, name := range rawUsageNames {
		if read(gjson.ParseBytes(c.json(name))) {
			return u
		}
	}
	if read(gjson.GetBytes(c.json("metadata"), "usage_object")) { // LiteLLM
		return u
	}
	found := false
	for _, name := range []string{"ai.response.providerMetadata", "gen_ai.response.provider_metadata"} {
		gjson.ParseBytes(c.json(name)).ForEach(func(_, vendor gjson.Result) bool { // AI SDK
			found = read(vendor.Get("usage")) || read(vendor.Get("usageMetadata"))
			return !found
		})
		if found {
			return u
		}
	}
	for _, path := range []string{"usage", "usageMetadata", "usage_metadata", "response.usage", "raw.usage", "llm_output.token_usage", "generations.0.0.message.kwargs.usage_metadata"} {
		if read(c.outputs.Get(path)) {
			return u
		}
	}
	if read(gjson.ParseBytes(c.json("mlflow.chat.tokenUsage"))) {
		return u
	}
	return plugins.Usage{}
}

// readUsage reads a usage in the dialect that its names tell.
func readUsage(v gjson.Result) plugins.Usage {
	has := func(name string) bool { return v.Get(name).Exists() }
	in := func(d plugins.Dialect, member string) plugins.Usage {
		return observe.Read(d, "", nil, []byte(`{"`+member+`":`+v.Raw+`}`)).Usage
	}
	counts := func() (t tally) {
		t.takeAll("", v)
		return t
	}
	switch {
	case has("promptTokenCount"):
		return in(plugins.GenerateContent, "usageMetadata")
	case has("prompt_tokens"):
		rest := counts().usage(false)
		rest.Merge(in(plugins.Chat, "usage"))
		return rest
	case has("input_tokens_details"):
		return in(plugins.Responses, "usage")
	case has("input_tokens") && !has("input_token_details") && !has("total_tokens") && (has("cache_read_input_tokens") || has("cache_creation_input_tokens") || has("cache_creation")):
		return in(plugins.Messages, "usage")
	case has("inputTokens") && (has("cacheReadInputTokens") || has("cacheWriteInputTokens")):
		return counts().usage(true) // Bedrock's Converse
	}
	return counts().usage(false)
}

// excludesCache reports whether the convention of the span leaves out of the input what came from
// the provider's cache, as Anthropic's own counts do.
func (c *call) excludesCache() bool {
	if c.text("span.type") == "llm_request" && c.text("gen_ai.usage.input_tokens") == "" { // Claude Code
		return true
	}
	if c.library == openLIT {
		return c.text(providerNames...) == "anthropic"
	}
	// AI SDK 5 passes on what Anthropic counts; later versions have details.
	vendor := c.text("ai.model.provider")
	return c.text("ai.usage.cachedInputTokens") != "" && c.text("ai.usage.inputTokenDetails.noCacheTokens") == "" &&
		(strings.HasPrefix(vendor, "anthropic") || strings.HasPrefix(vendor, "amazon-bedrock") || strings.Contains(vendor, "vertex.anthropic"))
}

// python makes JSON of counts as Python prints them, which LangSmith's exporter does
// (https://github.com/ClickHouse/nerve/pull/105).
var python = strings.NewReplacer("'", `"`, "None", "null")

// usagePrefixes begin attributes that have a count each. The first that has a count wins.
var usagePrefixes = [...]string{"gen_ai.usage.", "llm.usage.", "llm.token_count.", "ai.usage.", "mastra.usage.", "gen_ai.usage.details.", "codex.usage.", ""}

// counts are the attributes that have a count each.
func (c *call) counts() tally {
	var tallies [len(usagePrefixes)]tally
	for key, value := range c.attributes {
		n := len(usagePrefixes) - 1
		for i, prefix := range usagePrefixes[:n] {
			if strings.HasPrefix(key, prefix) && (n == len(usagePrefixes)-1 || len(prefix) > len(usagePrefixes[n])) {
				n = i
			}
		}
		name := key[len(usagePrefixes[n]):]
		if usagePrefixes[n] == "" && !isTokens(name) {
			continue
		}
		if value.GetKvlistValue() != nil || strings.HasPrefix(scalar(value), "{") {
			object := c.json(key)
			if printed := []byte(python.Replace(scalar(value))); object == nil && json.Valid(printed) {
				object = printed
			}
			tallies[n].takeAll(name, gjson.ParseBytes(object))
			continue
		}
		if count := c.count(key); count.Valid {
			tallies[n].take(name, count.N)
		}
	}
	all := tallies[0]
	for _, t := range tallies[1:] {
		for p := range all {
			all[p] = all[p].Or(t[p])
		}
	}
	return all
}

// isTokens reports whether an attribute without a prefix counts tokens, as those of Claude Code
// do: input_tokens, cache_read_tokens.
func isTokens(name string) bool {
	return (strings.HasSuffix(name, "_tokens") || strings.HasSuffix(name, "_token_count")) && !strings.ContainsRune(name, '.')
}

// part is what a count counts.
type part uint8

const (
	noPart part = iota
	input
	output
	total
	cacheRead
	cacheReadAudio
	cacheWrite
	cacheWrite5m
	cacheWrite1h
	reasoning
	inputAudio
	outputAudio
	inputImage
	outputImage
	webSearches
	numParts
)

// tally has counts by what they count.
type tally [numParts]plugins.Count

// take takes a count by its name. Of two names for one thing, the larger count holds.
func (t *tally) take(name string, n int64) {
	if p := partOf(name); p != noPart {
		t[p] = plugins.Known(max(t[p].N, n))
	}
}

// takeAll takes the counts in an object.
func (t *tally) takeAll(prefix string, v gjson.Result) {
	v.ForEach(func(name, value gjson.Result) bool {
		path := prefix + "." + name.Str
		switch {
		case value.IsObject() && strings.Count(path, ".") < 5:
			t.takeAll(path, value)
		case value.Type == gjson.Number && isCount(value.Num):
			t.take(path, int64(value.Num))
		}
		return true
	})
}

// isCount reports whether a number is whole and not negative.
func isCount(n float64) bool { return n >= 0 && n < 1<<53 && n == math.Trunc(n) }

// partOf tells by its words what a name counts.
func partOf(name string) part {
	all := wordsOf(name)
	has := func(w words) bool { return all&w != 0 }
	pick := func(in, ofOutput part) part {
		if has(outputWord) {
			return ofOutput
		}
		return in
	}
	switch {
	case has(noTokens):
		return noPart
	case has(searches) || has(search) && has(web|requests):
		return webSearches
	case has(oneHour):
		return cacheWrite1h
	case has(fiveMinutes):
		return cacheWrite5m
	case has(cached) && has(written):
		return cacheWrite
	case has(cached) && has(audio):
		return cacheReadAudio
	case has(cached) && has(image):
		return noPart
	case has(cached):
		return cacheRead
	case has(thought):
		return reasoning
	case has(audio):
		return pick(inputAudio, outputAudio)
	case has(image):
		return pick(inputImage, outputImage)
	case has(noSum):
		return noPart
	case has(outputWord):
		return output
	case has(inputWord):
		return input
	case has(totalWord) || all == tokens:
		return total
	}
	return noPart
}

// words is a set of the words in the name of a count.
type words uint32

const (
	noTokens words = 1 << iota // a word of what counts no tokens, or a part that is in no record
	noSum                      // the same, unless a word before it in partOf decides
	search
	searches
	web
	requests
	oneHour
	fiveMinutes
	cached
	written
	thought
	audio
	image
	outputWord
	inputWord
	totalWord
	tokens
	otherWord
)

// wordsByText has all words but otherWord.
var wordsByText = func() map[string]words {
	byText := make(map[string]words)
	for w, texts := range map[words]string{
		noTokens:    "cost price max limit text accepted rejected no uncached latency per thread context",
		noSum:       "tool video document prediction characters images",
		search:      "search",
		searches:    "searches",
		web:         "web",
		requests:    "requests",
		oneHour:     "1h ephemeral1h",
		fiveMinutes: "5m ephemeral5m",
		cached:      "cache cached caching",
		written:     "write creation created written writes",
		thought:     "reasoning thoughts thinking thought",
		audio:       "audio",
		image:       "image",
		outputWord:  "output completion candidates response generated",
		inputWord:   "input prompt",
		totalWord:   "total",
		tokens:      "tokens",
	} {
		for text := range strings.FieldsSeq(texts) {
			byText[text] = w
		}
	}
	return byText
}()

// wordsOf returns the words of a name, which begin with capital letters, or have other characters
// than letters and digits between them.
func wordsOf(name string) (all words) {
	word := make([]byte, 0, 32)
	end := func() {
		if len(word) > 0 {
			all |= cmp.Or(wordsByText[string(word)], otherWord)
			word = word[:0]
		}
	}
	for _, r := range name {
		inWord := unicode.IsLetter(r) || unicode.IsDigit(r)
		if !inWord || unicode.IsUpper(r) {
			end()
		}
		if inWord {
			word = utf8.AppendRune(word, unicode.ToLower(r))
		}
	}
	end()
	return all
}

// used reports whether there is a usage at all.
func (t tally) used() bool {
	return t[input].N > 0 || t[output].N > 0 || t[total].N > 0
}

// usage makes a usage of the counts. excludesCache says that the input has no cached tokens for
// sure. Otherwise, the total tells it, and whether reasoning is a part of the output.
func (t tally) usage(excludesCache bool) plugins.Usage {
	u := plugins.Usage{
		Input: t[input], Output: t[output], CacheRead: t[cacheRead], CacheReadAudio: t[cacheReadAudio],
		CacheWrite: t[cacheWrite], CacheWrite1h: t[cacheWrite1h], Reasoning: t[reasoning],
		InputAudio: t[inputAudio], OutputAudio: t[outputAudio], InputImage: t[inputImage], OutputImage: t[outputImage],
		WebSearches: t[webSearches],
	}
	if parts := t[cacheWrite5m].N + t[cacheWrite1h].N; parts > u.CacheWrite.N {
		u.CacheWrite = plugins.Known(parts)
	}
	cached := u.CacheRead.N + u.CacheWrite.N
	sum := func(more int64) bool { return more > 0 && t[total].N == t[input].N+t[output].N+more }
	switch {
	case u.Input.Valid && (excludesCache || cached > u.Input.N || sum(cached) || sum(cached+u.Reasoning.N) && cached > 0):
		u.Input = plugins.Known(u.Input.N + cached)
	}
	if u.Output.Valid && (u.Reasoning.N > u.Output.N || sum(u.Reasoning.N) || sum(cached+u.Reasoning.N) && u.Reasoning.N > 0) {
		u.Output = plugins.Known(u.Output.N + u.Reasoning.N)
	}
	return u
}

// importedCost is the cost that `weir import` states, also 0 for an answer from a cache.
const importedCost = "gen_ai.usage.cost"

// statedCost is what the application says that the call cost.
func (c *call) statedCost() plugins.Cost {
	dollars, ok := c.number(importedCost)
	ok = ok && c.library != openLIT // it estimates the cost of each call, of one without a known price as 0
	if !ok {
		dollars, ok = c.number(costNames...) // OpenInference has llm.cost.total
		ok = ok && dollars > 0               // libraries state 0 for models without a price, too
	}
	if details := gjson.ParseBytes(c.json(observation + "cost_details")); !ok && details.IsObject() {
		if total := details.Get("total"); total.Exists() {
			dollars = total.Num
		} else {
			dollars = 0
			details.ForEach(func(_, part gjson.Result) bool {
				dollars += part.Num
				return true
			})
		}
		ok = dollars > 0
	}
	if !ok || dollars < 0 || dollars > 1e9 {
		return plugins.Cost{}
	}
	return plugins.KnownCost(plugins.Nanodollars(math.Round(dollars * 1e9)))
}
