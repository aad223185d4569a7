package llmgateway

import (
	_ "embed"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/modules/internal/openapi"
)

// openAPIPath is that of the description of the gateway's endpoints.
const openAPIPath = "/v1/openapi.json"

// common is what the description says beside the operations.
//
//go:embed openapi.json
var common []byte

var description *openapi.Document

func init() { description = newDescription() }

// about is what the description says of an operation. Parameters are named.
type about struct {
	id, tag, summary, docs string
	query                  []string
	// body is nil where none is taken, and answer where JSON is answered that is not
	// recorded.
	body, answer openapi.Object
}

// served are the methods of each path that the gateway has.
func served() map[string][]string {
	paths := map[string][]string{
		modelsPath: {http.MethodGet}, modelsPath + "/{id}": {http.MethodGet}, modelsPath + "/multimodal": {http.MethodGet},
		openAPIPath: {http.MethodGet},
	}
	for path := range dialects {
		paths[path] = []string{http.MethodPost}
	}
	paths["/v1/responses"] = append(paths["/v1/responses"], http.MethodGet)
	paths[realtimePath] = []string{http.MethodGet}
	for path, methods := range stateRoutes {
		paths[path] = slices.Collect(maps.Keys(methods))
	}
	for path, methods := range fileRoutes {
		paths[path] = strings.Split(methods, ", ")
	}
	return paths
}

func newDescription() *openapi.Document {
	operations := make(map[string]map[string]*openapi.Operation)
	for path, methods := range served() {
		operations[path] = make(map[string]*openapi.Operation)
		for _, method := range methods {
			operations[path][method] = descriptions[method+" "+path].operation(path)
		}
	}
	return openapi.New(common, operations, nil)
}

// The control headers that operations of a tag read.
var (
	ofUsers    = []string{"UserID"}
	ofFiles    = append(ofUsers, "SessionID", "SessionName", "SessionPath", "Properties", "RequestID", "OmitRequest", "OmitResponse")
	ofModels   = append(ofFiles, "PromptID", "PromptVersion", "ModelOverride", "ExperimentID", "NodeID", "JobID", "CacheEnabled", "Cost", "Strict")
	controlsOf = map[string][]string{"models": ofModels, "files": ofFiles, "responses": ofUsers, "conversations": ofUsers}
)

func (a about) operation(path string) *openapi.Operation {
	o := &openapi.Operation{ID: a.id, Tags: []string{a.tag}, Summary: a.summary, Body: a.body}
	if a.docs != "" {
		o.Docs = openapi.Object{"url": a.docs}
	}
	for in, name := range map[string]string{"{id}": "ID", "{item}": "Item"} {
		if strings.Contains(path, in) {
			o.Parameters = append(o.Parameters, openapi.Ref("parameters", name))
		}
	}
	for _, name := range slices.Concat(a.query, controlsOf[a.tag]) {
		o.Parameters = append(o.Parameters, openapi.Ref("parameters", name))
	}
	status, answer := "200", a.answer
	switch {
	case answer == nil:
		answer = answersWith("application/json")
	case answer["content"] == nil:
		status = "101"
	}
	errors := "OpenAI"
	if isAnthropic(dialects[path]) {
		errors = "Anthropic"
	}
	o.Responses = map[string]openapi.Object{
		status: answer, "4XX": openapi.Ref("responses", errors+"Refused"), "5XX": openapi.Ref("responses", errors+"Failed"),
	}
	if a.tag == "catalogue" { // is open, unless a key is required
		o.Security = []any{openapi.Object{}, openapi.Object{"key": []string{}}}
	}
	return o
}

// The bodies that are taken, with the fields that the gateway itself needs.

func takesJSON(required ...string) openapi.Object {
	return openapi.Object{"required": true, "content": openapi.Content("application/json", with(required))}
}

func takesForm(required ...string) openapi.Object {
	return openapi.Object{"required": true, "content": openapi.Content("multipart/form-data", with(required))}
}

func takesEither(required ...string) openapi.Object {
	body := takesForm(required...)
	body["content"].(openapi.Object)["application/json"] = openapi.Object{"schema": with(required)}
	return body
}

// with is an object with those fields.
func with(required []string) openapi.Object {
	if len(required) == 0 {
		return openapi.Object{"type": "object"}
	}
	return openapi.Object{"type": "object", "required": required}
}

var takesAny = openapi.Object{"required": false, "content": openapi.Content("application/json", with(nil))}

func answersWith(types ...string) openapi.Object {
	content := make(openapi.Object)
	for _, t := range types {
		content[t] = openapi.Object{}
	}
	return openapi.Object{"description": "The answer.", "content": content}
}

// recorded is the answer of a call that has a record.
func recorded(types ...string) openapi.Object {
	answer := answersWith(types...)
	answer["headers"] = openapi.Object{"Service-Id": openapi.Ref("headers", "ID"), "Service-Warnings": openapi.Ref("headers", "Warnings")}
	return answer
}

var upgraded = openapi.Object{"description": "The WebSocket is open."}

// openai is where OpenAI describes its endpoints.
const openai = "https://platform.openai.com/docs/api-reference/"

// descriptions are those of each operation.
var descriptions = map[string]about{
	"POST /v1/responses": {
		id: "createResponse", tag: "models", summary: "Calls a model in the format of OpenAI's Responses, whoever serves it",
		docs: openai + "responses/create",
		body: takesJSON("model"), answer: recorded("application/json", "text/event-stream"),
	},
	"GET /v1/responses": {
		id: "openResponses", tag: "models", summary: "The same over a WebSocket",
		docs:   "https://developers.openai.com/docs/guides/websocket-mode",
		answer: upgraded,
	},
	"POST /v1/responses/compact": {
		id: "compactResponse", tag: "models", summary: "Makes a compaction of a conversation",
		docs: openai + "responses/compact",
		body: takesJSON("model"), answer: recorded("application/json"),
	},
	"POST /v1/responses/input_tokens": {
		id: "countResponseTokens", tag: "models", summary: "Counts the tokens of a request of Responses; it costs nothing",
		docs: openai + "responses/input-tokens",
		body: takesJSON("model"), answer: recorded("application/json"),
	},
	"GET /v1/responses/{id}": {
		id: "getResponse", tag: "responses", summary: "A response that is kept, or generated in the background",
		docs:  openai + "responses/get",
		query: []string{"Stream", "StartingAfter"}, answer: answersWith("application/json", "text/event-stream"),
	},
	"DELETE /v1/responses/{id}": {
		id: "deleteResponse", tag: "responses", summary: "Deletes a response; its record stays",
		docs: openai + "responses/delete",
	},
	"GET /v1/responses/{id}/input_items": {
		id: "listInputItems", tag: "responses", summary: "Lists what a response answered",
		docs:  openai + "responses/input-items",
		query: []string{"Limit", "Order", "After"},
	},
	"POST /v1/responses/{id}/cancel": {
		id: "cancelResponse", tag: "responses", summary: "Ends a response that is generated in the background",
		docs: openai + "responses/cancel",
	},
	"POST /v1/conversations": {
		id: "createConversation", tag: "conversations", summary: "Makes a conversation",
		docs: openai + "conversations/create",
		body: takesAny,
	},
	"GET /v1/conversations/{id}": {
		id: "getConversation", tag: "conversations", summary: "A conversation",
		docs: openai + "conversations/retrieve",
	},
	"POST /v1/conversations/{id}": {
		id: "updateConversation", tag: "conversations", summary: "Replaces its metadata",
		docs: openai + "conversations/update",
		body: takesJSON("metadata"),
	},
	"DELETE /v1/conversations/{id}": {
		id: "deleteConversation", tag: "conversations", summary: "Deletes it with its items",
		docs: openai + "conversations/delete",
	},
	"GET /v1/conversations/{id}/items": {
		id: "listConversationItems", tag: "conversations", summary: "Lists its items",
		docs:  openai + "conversations/list-items",
		query: []string{"Limit", "Order", "After"},
	},
	"POST /v1/conversations/{id}/items": {
		id: "addConversationItems", tag: "conversations", summary: "Adds items",
		docs: openai + "conversations/create-items",
		body: takesJSON("items"),
	},
	"GET /v1/conversations/{id}/items/{item}": {
		id: "getConversationItem", tag: "conversations", summary: "An item",
		docs: openai + "conversations/get-item",
	},
	"DELETE /v1/conversations/{id}/items/{item}": {
		id: "deleteConversationItem", tag: "conversations", summary: "Removes an item",
		docs: openai + "conversations/delete-item",
	},
	"POST /v1/chat/completions": {
		id: "createChatCompletion", tag: "models", summary: "Calls a model in the format of OpenAI's Chat Completions, whoever serves it",
		docs: openai + "chat/create",
		body: takesJSON("model"), answer: recorded("application/json", "text/event-stream"),
	},
	"POST /v1/messages": {
		id: "createMessage", tag: "models", summary: "Calls a model in the format of Anthropic's Messages, whoever serves it",
		docs: "https://docs.claude.com/en/api/messages",
		body: takesJSON("model"), answer: recorded("application/json", "text/event-stream"),
	},
	"POST /v1/messages/count_tokens": {
		id: "countMessageTokens", tag: "models", summary: "Counts the tokens of a request of Messages; it costs nothing",
		docs: "https://docs.claude.com/en/api/messages-count-tokens",
		body: takesJSON("model"), answer: recorded("application/json"),
	},
	"POST /v1/embeddings": {
		id: "createEmbedding", tag: "models", summary: "Embeds texts",
		docs: openai + "embeddings/create",
		body: takesJSON("model"), answer: recorded("application/json"),
	},
	"POST /v1/completions": {
		id: "createCompletion", tag: "models", summary: "Calls a model in the format of OpenAI's Completions",
		docs: openai + "completions/create",
		body: takesJSON("model"), answer: recorded("application/json", "text/event-stream"),
	},
	"POST /v1/moderations": {
		id: "createModeration", tag: "models", summary: "Classifies contents; without a model it is `omni-moderation-latest`",
		docs: openai + "moderations/create",
		body: takesJSON(), answer: recorded("application/json"),
	},
	"POST /v1/images/generations": {
		id: "createImage", tag: "models", summary: "Generates images",
		docs: openai + "images/create",
		body: takesJSON("model"), answer: recorded("application/json", "text/event-stream"),
	},
	"POST /v1/images/edits": {
		id: "editImage", tag: "models", summary: "Edits images",
		docs: openai + "images/createEdit",
		body: takesEither("model"), answer: recorded("application/json", "text/event-stream"),
	},
	"POST /v1/images/variations": {
		id: "varyImage", tag: "models", summary: "Makes variations of an image",
		docs: openai + "images/createVariation",
		body: takesForm("model"), answer: recorded("application/json"),
	},
	"POST /v1/audio/speech": {
		id: "createSpeech", tag: "models", summary: "Speaks a text",
		docs: openai + "audio/createSpeech",
		body: takesJSON("model"), answer: recorded("audio/*", "text/event-stream"),
	},
	"POST /v1/audio/transcriptions": {
		id: "createTranscription", tag: "models", summary: "Transcribes audio",
		docs: openai + "audio/createTranscription",
		body: takesForm("model"), answer: recorded("application/json", "text/plain", "text/event-stream"),
	},
	"POST /v1/audio/translations": {
		id: "createTranslation", tag: "models", summary: "Translates audio to English text",
		docs: openai + "audio/createTranslation",
		body: takesForm("model"), answer: recorded("application/json", "text/plain"),
	},
	"POST /v1/rerank": {
		id: "rerank", tag: "models", summary: "Ranks documents, in Cohere's format",
		docs: "https://docs.cohere.com/reference/rerank",
		body: takesJSON("model"), answer: recorded("application/json"),
	},
	"POST /v2/rerank": {
		id: "rerankV2", tag: "models", summary: "Ranks documents, in Cohere's format",
		docs: "https://docs.cohere.com/reference/rerank",
		body: takesJSON("model"), answer: recorded("application/json"),
	},
	"GET /v1/realtime": {
		id: "openRealtime", tag: "models", summary: "OpenAI's Realtime over a WebSocket",
		docs:  "https://platform.openai.com/docs/guides/realtime-websocket",
		query: []string{"RealtimeModel"}, answer: upgraded,
	},
	"GET /v1/files": {
		id: "listFiles", tag: "files", summary: "Lists the files at a provider",
		docs:  openai + "files/list",
		query: []string{"Provider"}, answer: recorded("application/json"),
	},
	"POST /v1/files": {
		id: "uploadFile", tag: "files", summary: "Uploads a file to a provider",
		docs:  openai + "files/create",
		query: []string{"Provider"}, body: takesForm("file", "purpose"), answer: recorded("application/json"),
	},
	"GET /v1/files/{id}": {
		id: "getFile", tag: "files", summary: "What is known of a file",
		docs:   openai + "files/retrieve",
		answer: recorded("application/json"),
	},
	"DELETE /v1/files/{id}": {
		id: "deleteFile", tag: "files", summary: "Deletes a file at its provider",
		docs:   openai + "files/delete",
		answer: recorded("application/json"),
	},
	"GET /v1/files/{id}/content": {
		id: "getFileContent", tag: "files", summary: "The bytes of a file; the results of a batch are recorded",
		docs:   openai + "files/retrieve-contents",
		answer: recorded("*/*"),
	},
	"GET /v1/batches": {
		id: "listBatches", tag: "files", summary: "Lists the batches at a provider",
		docs:  openai + "batch/list",
		query: []string{"Provider"}, answer: recorded("application/json"),
	},
	"POST /v1/batches": {
		id: "createBatch", tag: "files", summary: "Makes a batch at the provider that has its input file",
		docs: openai + "batch/create",
		body: takesJSON("input_file_id"), answer: recorded("application/json"),
	},
	"GET /v1/batches/{id}": {
		id: "getBatch", tag: "files", summary: "A batch",
		docs:   openai + "batch/retrieve",
		answer: recorded("application/json"),
	},
	"POST /v1/batches/{id}/cancel": {
		id: "cancelBatch", tag: "files", summary: "Ends a batch",
		docs:   openai + "batch/cancel",
		answer: recorded("application/json"),
	},
	"GET /v1/models": {
		id: "listModels", tag: "catalogue", summary: "Lists the models that can be called; in Anthropic's form for callers that send `Anthropic-Version`",
		docs:  openai + "models/list",
		query: []string{"Detail", "ModelLimit", "AfterID", "BeforeID"},
	},
	"GET /v1/models/{id}": {
		id: "getModel", tag: "catalogue", summary: "One of them; its id may have slashes",
		docs:  openai + "models/retrieve",
		query: []string{"Detail"},
	},
	"GET /v1/models/multimodal": {
		id: "listMultimodalModels", tag: "catalogue", summary: "Those with more than text",
		query: []string{"Detail"},
	},
	"GET /v1/openapi.json": {
		id: "describeGateway", tag: "catalogue", summary: "This description",
	},
}
