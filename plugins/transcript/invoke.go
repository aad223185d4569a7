package transcript

import (
	"encoding/base64"
	"iter"
	"slices"

	"github.com/tidwall/gjson"
)

// invocationMetrics is what Bedrock adds to the last chunk of any model.
const invocationMetrics = "amazon-bedrock-invocationMetrics"

// plainText joins the chunks of the models that stream nothing but text: Llama
// (generation), Titan (outputText), Mistral (outputs), Cohere Command (text or
// generations) and the first Claude (completion).
var plainText = Object(Fields{
	"generation":  Join,
	"outputText":  Join,
	"text":        Join,
	"completion":  Join,
	"outputs":     List(Fields{"text": Join}),
	"generations": List(Fields{"text": Join}),
})

// Invoke is the transcript of Bedrock's InvokeModel, in the formats of all makers
// of models.
var Invoke = Format{
	Input: []string{"system", "messages", "prompt", "inputText"},
	Output: []string{
		`content.#(type=="text")#.text`, "output.message.content", "choices.#.message.content",
		"generation", "results.#.outputText", "outputs.#.text", "generations.#.text", "completion", "text",
	},
	Calls:    slices.Concat(Messages.Calls, Chat.Calls, Converse.Calls),
	assemble: invoke,
}

// invoke assembles Bedrock's InvokeModelWithResponseStream, whose chunks hold
// the stream of the model's own dialect.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html
func invoke(root *node, events iter.Seq[event]) {
	var native, exceptions []event
	var metrics string
	for e := range events {
		if e.name != "chunk" {
			exceptions = append(exceptions, e)
			continue
		}
		data, err := base64.StdEncoding.DecodeString(e.Get("bytes").Str)
		if err != nil {
			continue
		}
		if e, ok := eventOf("", data); ok {
			native = append(native, e)
		}
	}
	for _, e := range native {
		if m := e.Get(invocationMetrics); m.Exists() {
			metrics = m.Raw
		}
	}

	if object := assembleNative(native); object != nil {
		*root = *object
	}
	if metrics != "" {
		root.ensure(invocationMetrics).set(metrics)
	}
	for _, e := range exceptions {
		root.ensure(e.name).add(e.Result, converseEvent)
	}
}

// assembleNative assembles the chunks of a model by the shape of the first.
func assembleNative(events []event) *node {
	if len(events) == 0 {
		return nil
	}
	switch e := events[0]; {
	case e.Get("type").Exists():
		return Messages.object(slices.Values(events))
	case e.Get("choices").Exists():
		return Chat.object(slices.Values(events))
	case e.Get("messageStart").Exists():
		return Converse.object(slices.Values(novaEvents(events)))
	}
	root := new(node)
	for _, e := range events {
		root.add(e.Result, plainText)
	}
	if root.get("outputText") != nil {
		return titan(root)
	}
	return root
}

// novaEvents names the events of Amazon Nova, which are those of Converse under
// their names as keys.
func novaEvents(events []event) []event {
	var named []event
	for _, e := range events {
		e.ForEach(func(key, value gjson.Result) bool {
			if key.Str != invocationMetrics {
				named = append(named, event{name: key.Str, Result: value})
			}
			return true
		})
	}
	return named
}

// titan is the answer of a Titan text model, whose chunks are flat.
func titan(chunk *node) *node {
	root := new(node)
	*root.ensure("inputTextTokenCount") = *chunk.ensure("inputTextTokenCount")
	result := root.list("results").ensure("0")
	*result.ensure("tokenCount") = *chunk.ensure("totalOutputTextTokenCount")
	*result.ensure("outputText") = *chunk.ensure("outputText")
	*result.ensure("completionReason") = *chunk.ensure("completionReason")
	return root
}
