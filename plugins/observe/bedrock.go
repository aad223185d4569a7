package observe

import (
	"slices"

	"github.com/weirhq/weir/plugins"
)

// converse is Bedrock's Converse. The types of its stream's events stand in the
// headers of their frames.
var converse = dialect{
	fields:   compile(converseFields...),
	last:     []string{"metadata"},
	finished: plugins.Finished,
}

var converseFields = []table{
	{
		"":                            sentinel,
		"stopReason":                  finish,
		"serviceTier.type":            tier,
		"output.message.content.#":    content,
		"start.toolUse":               content,
		"delta.text":                  content,
		"delta.toolUse.input":         content,
		"delta.toolResult.#":          content,
		"delta.reasoningContent.text": content,
		"delta.image":                 content,
	},
	converseUsage.under("usage"),
}

// The counts of input leave out what the cache served or took.
var converseUsage = table{
	"inputTokens":                uncached,
	"cacheReadInputTokens":       cacheRead,
	"cacheReadInputTokenCount":   cacheRead, // Nova in InvokeModel
	"cacheWriteInputTokens":      cacheWrite,
	"cacheWriteInputTokenCount":  cacheWrite,
	"outputTokens":               output,
	"totalTokens":                total,
	"cacheDetails.#":             detail,
	"cacheDetails.#.ttl":         detailName,
	"cacheDetails.#.inputTokens": writtenDetail,
}

// invoke is Bedrock's InvokeModel, whose bodies are those of the models'
// makers; the last event of a stream also has what Bedrock counted.
var invoke = dialect{
	fields: compile(slices.Concat(chatFields, converseFields, cohereFields, messagesFields, []table{
		nova, titan, llama, mistral,
		{
			"amazon-bedrock-invocationMetrics":                           done,
			"amazon-bedrock-invocationMetrics.inputTokenCount":           metricUncached,
			"amazon-bedrock-invocationMetrics.cacheReadInputTokenCount":  metricCacheRead,
			"amazon-bedrock-invocationMetrics.cacheWriteInputTokenCount": metricCacheWrite,
			"amazon-bedrock-invocationMetrics.outputTokenCount":          metricOutput,
		},
	})...),
	last:     messages.last,
	finished: plugins.Finished,
}

// nova is what the stream of Amazon's Nova has beside Converse's body.
var nova = table{
	"messageStop.stopReason":                   finish,
	"contentBlockStart.start.toolUse":          content,
	"contentBlockDelta.delta.text":             content,
	"contentBlockDelta.delta.toolUse.input":    content,
	"metadata.usage.inputTokens":               uncached,
	"metadata.usage.outputTokens":              output,
	"metadata.usage.cacheReadInputTokenCount":  cacheRead,
	"metadata.usage.cacheWriteInputTokenCount": cacheWrite,
}

var titan = table{
	"inputTextTokenCount":        input,
	"results.#.tokenCount":       output,
	"results.#.completionReason": finish,
	"results.#.outputText":       content,
	"totalOutputTextTokenCount":  output,
	"completionReason":           finish,
	"outputText":                 content,
}

var llama = table{
	"prompt_token_count":     input,
	"generation_token_count": output,
	"stop_reason":            finish,
	"generation":             content,
}

var mistral = table{
	"outputs.#.stop_reason": finish,
	"outputs.#.text":        content,
}
