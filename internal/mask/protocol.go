package mask

// Numbers of a protocol, such as max_tokens, are nobody's data: a pattern of four digits would refuse
// every request that limits its answer. They stand in the outermost object of a body, or in one of its
// objects of settings and counts. Every other number may be content: what tools are called with
// has any name, also one of these.

// protocolNumbers are members of the outermost object whose values are numbers of a protocol.
// https://platform.openai.com/docs/api-reference
// https://platform.claude.com/docs/en/api/messages
// https://docs.cohere.com/reference/chat
// https://github.com/ollama/ollama/blob/main/docs/api.md
var protocolNumbers = setOf(
	"max_tokens", "max_completion_tokens", "max_output_tokens", "max_tool_calls", "max_tokens_to_sample",
	"temperature", "top_p", "p", "top_k", "k", "top_n", "top_logprobs", "logprobs", "presence_penalty", "frequency_penalty",
	"n", "best_of", "seed", "dimensions", "output_dimension", "keep_alive",
	"created", "created_at", "completed_at",
	"total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration",
)

// protocolObjects are members of the outermost object in which all numbers are those of a protocol.
// https://ai.google.dev/api/generate-content
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
var protocolObjects = setOf(
	"generationConfig", "generation_config", "inferenceConfig", "thinking", "reasoning", "options", "stream_options",
	"usage", "usageMetadata", "metrics",
)

// schemas are members of protocolObjects that callers write: their numbers may be content.
var schemas = setOf("responseSchema", "responseJsonSchema", "_responseJsonSchema", "response_schema", "response_json_schema")

func setOf(names ...string) map[string]struct{} {
	set := make(map[string]struct{}, len(names))
	for _, name := range names {
		set[name] = struct{}{}
	}
	return set
}

// nesting is where in a body in JSON a finder reads.
type nesting struct {
	depth    int    // objects and arrays around it
	root     byte   // of the outermost, { or [
	member   []byte // the text before, which names what follows if that is a value
	protocol bool   // within one of protocolObjects
	schema   bool   // within one of schemas
}

// open enters an object or an array, and leave leaves it.
func (n *nesting) open(c byte) {
	if n.depth++; n.depth == 1 {
		n.root = c
	}
	switch {
	case n.depth == 2 && n.root == '{' && c == '{':
		_, n.protocol = protocolObjects[string(n.member)]
	case n.depth == 3 && n.protocol:
		_, n.schema = schemas[string(n.member)]
	}
}

func (n *nesting) leave() {
	n.depth--
	n.schema = n.schema && n.depth >= 3
	n.protocol = n.protocol && n.depth >= 2
}

// protocolNumber reports whether a number that stands here is one of a protocol.
func (n *nesting) protocolNumber() bool {
	if n.protocol {
		return !n.schema
	}
	_, known := protocolNumbers[string(n.member)]
	return known && n.depth == 1 && n.root == '{'
}
