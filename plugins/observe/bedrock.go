package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Converse is Bedrock's Converse. The types of the events of a stream are in the
// headers of their frames.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
func init() {
	Register(Dialect{
		Name:  plugins.Converse,
		Paths: []string{"/model/{model}/converse", "/model/{model}/converse-stream"},
		Signs: []string{`stopReason:"`},
		Request: tables(converseParts, messagesIn("messages"), Table{
			"serviceTier.type":                ServiceTier,
			"system":                          Instructions,
			"system.#.cachePoint":             CacheMark,
			"toolConfig":                      Tools,
			"toolConfig.tools.#.cachePoint":   CacheMark,
			"messages.#.content.#.cachePoint": CacheMark,
		}),
		Response:    converseResponse,
		Headers:     map[string]Field{errorTypeHeader: ErrorType},
		LastEvents:  []string{"metadata"},
		AfterFinish: plugins.Finished,
		Transcript:  transcript.Converse,
	})
}

// Invoke is Bedrock's InvokeModel, whose bodies are those of the models' makers;
// the last event of a stream also has what Bedrock counted, and so have the
// headers of other responses.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html
func init() {
	Register(Dialect{
		Name:     plugins.Invoke,
		Paths:    []string{"/model/{model}/invoke", "/model/{model}/invoke-with-response-stream"},
		Request:  tables(anthropicParts, anthropicOutline, converseParts),
		Response: tables(chatResponse, converseResponse, cohereResponse, cohereEmbedResponse, messagesResponse, invokeResponse),
		Headers: map[string]Field{
			errorTypeHeader:                                ErrorType,
			"X-Amzn-Bedrock-Input-Token-Count":             MeteredInput,
			"X-Amzn-Bedrock-Cache-Read-Input-Token-Count":  MeteredCacheRead,
			"X-Amzn-Bedrock-Cache-Write-Input-Token-Count": MeteredCacheWrite,
			"X-Amzn-Bedrock-Output-Token-Count":            MeteredOutput,
		},
		LastEvents:  messagesLast,
		AfterFinish: plugins.Finished,
		Transcript:  transcript.Invoke,
	})
}

// errorTypeHeader has the type of an error whose body has only a message.
const errorTypeHeader = "X-Amzn-Errortype"

var converseParts = tables(namedPart.Under("messages.#.content.#"),
	namedPart.Under("messages.#.content.#.toolResult.content.#"))

var converseResponse = tables(Table{
	"stopReason":                            FinishReason,
	"serviceTier.type":                      ServiceTier,
	"output.message.content.#":              Content,
	"output.message.content.#.toolUse.name": Item,
	"start.toolUse":                         Content,
	"start.toolUse.name":                    Item,
	"delta.text":                            Content,
	"delta.toolUse.input":                   Content,
	"delta.toolResult.#":                    Content,
	"delta.reasoningContent.text":           Content,
	"delta.image":                           Content,
	"message":                               ErrorMessage,
}, converseUsage.Under("usage"))

// The counts of input leave out what the cache served or took.
var converseUsage = Table{
	"inputTokens":                UncachedInput,
	"cacheReadInputTokens":       CacheRead,
	"cacheReadInputTokenCount":   CacheRead, // Nova in InvokeModel
	"cacheWriteInputTokens":      CacheWrite,
	"cacheWriteInputTokenCount":  CacheWrite,
	"outputTokens":               Output,
	"totalTokens":                Total,
	"cacheDetails.#":             detail,
	"cacheDetails.#.ttl":         detailName,
	"cacheDetails.#.inputTokens": writtenDetail,
}

// invokeResponse is what Bedrock adds to the makers' bodies, and the bodies of the
// makers that have no other dialect here.
var invokeResponse = Table{
	"amazon-bedrock-invocationMetrics":                           Done,
	"amazon-bedrock-invocationMetrics.inputTokenCount":           MeteredInput,
	"amazon-bedrock-invocationMetrics.cacheReadInputTokenCount":  MeteredCacheRead,
	"amazon-bedrock-invocationMetrics.cacheWriteInputTokenCount": MeteredCacheWrite,
	"amazon-bedrock-invocationMetrics.outputTokenCount":          MeteredOutput,

	// Amazon's Nova, whose stream is Converse's under names of its own.
	"messageStop.stopReason":                   FinishReason,
	"contentBlockStart.start.toolUse":          Content,
	"contentBlockDelta.delta.text":             Content,
	"contentBlockDelta.delta.toolUse.input":    Content,
	"metadata.usage.inputTokens":               UncachedInput,
	"metadata.usage.outputTokens":              Output,
	"metadata.usage.cacheReadInputTokenCount":  CacheRead,
	"metadata.usage.cacheWriteInputTokenCount": CacheWrite,

	// Amazon's Titan, embeddings too.
	"inputTextTokenCount":        Input,
	"results.#.tokenCount":       Output,
	"results.#.completionReason": FinishReason,
	"results.#.outputText":       Content,
	"totalOutputTextTokenCount":  Output,
	"completionReason":           FinishReason,
	"outputText":                 Content,

	// Meta's Llama.
	"prompt_token_count":     Input,
	"generation_token_count": Output,
	"stop_reason":            FinishReason,
	"generation":             Content,

	// Mistral.
	"outputs.#.stop_reason": FinishReason,
	"outputs.#.text":        Content,
}
