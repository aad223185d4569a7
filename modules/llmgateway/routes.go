package llmgateway

import (
	"cmp"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/llmgateway/responsesapi"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// route is an endpoint: what serves it, and what its description says.
type route struct {
	pattern string // the method and the path, in which {id} and {item} stand for any segment

	dialect plugins.Dialect // dialect of the calls of models
	native  bool            // the bytes of both sides pass as they are, but for the name of the model
	model   string          // the model of a request that names none, "" if it must name one
	// usage returns what a call uses, on a scale. It is nil if calls are conversations.
	usage  func(*input, bound.Scale) plugins.Usage
	answer func(*responsesapi.Call) (any, error) // answers with what is kept, nil if the answer is written

	id, summary string
	docs        string   // a link; without a scheme it is relative to OpenAI's reference
	query       []string // names of the parameters in openapi.json
	takes       takes    // what the body is; JSON for calls of models
	fields      []string // fields of the body that the gateway needs; the model for calls of models
	answers     []string // media types; JSON by default
}

const (
	openAPIPath        = "/v1/openapi.json"
	modelsPath         = "/v1/models"
	resourcePath       = "/.well-known/oauth-protected-resource"
	realtimePath       = "/v1/realtime"
	messageBatchesPath = "/v1" + observe.MessageBatches
)

var (
	jsonOrEvents = []string{jsonType, "text/event-stream"}
	page         = []string{"Limit", "Order", "After"}
)

// group is a set of routes that are served in the same way.
type group struct {
	tag    string // the tag in the description
	serve  func(*Handler, http.ResponseWriter, *http.Request, *match) error
	routes []route
}

// groups are all routes. The endpoints that are not translated are OpenAI's
// (https://platform.openai.com/docs/api-reference), and Cohere's rerank.
func groups() []group {
	return []group{
		{"models", (*Handler).serveCall, []route{
			{pattern: "POST /v1/responses", dialect: plugins.Responses, answers: jsonOrEvents,
				id: "createResponse", docs: "responses/create", summary: "Calls a model in the format of OpenAI's Responses, whoever serves it"},
			{pattern: "POST /v1/responses/compact", dialect: plugins.Compaction,
				id: "compactResponse", docs: "responses/compact", summary: "Makes a compaction of a conversation"},
			{pattern: "POST /v1/responses/input_tokens", dialect: plugins.InputTokens,
				id: "countResponseTokens", docs: "responses/input-tokens", summary: "Counts the tokens of a request of Responses; it costs nothing"},
			{pattern: "POST /v1/chat/completions", dialect: plugins.Chat, answers: jsonOrEvents,
				id: "createChatCompletion", docs: "chat/create", summary: "Calls a model in the format of OpenAI's Chat Completions, whoever serves it"},
			{pattern: "POST /v1/messages", dialect: plugins.Messages, answers: jsonOrEvents,
				id: "createMessage", docs: "https://docs.claude.com/en/api/messages", summary: "Calls a model in the format of Anthropic's Messages, whoever serves it"},
			{pattern: "POST /v1/messages/count_tokens", dialect: plugins.CountTokens,
				id: "countMessageTokens", docs: "https://docs.claude.com/en/api/messages-count-tokens", summary: "Counts the tokens of a request of Messages; it costs nothing"},
			{pattern: "POST /v1/embeddings", dialect: plugins.Embeddings, native: true, usage: (*input).textOnly,
				id: "createEmbedding", docs: "embeddings/create", summary: "Embeds texts"},
			{pattern: "POST /v1/completions", dialect: plugins.Completions, native: true, answers: jsonOrEvents,
				id: "createCompletion", docs: "completions/create", summary: "Calls a model in the format of OpenAI's Completions"},
			{pattern: "POST /v1/moderations", dialect: plugins.Moderations, native: true, usage: (*input).textOnly, model: defaultModeration,
				id: "createModeration", docs: "moderations/create", summary: "Classifies contents; without a model it is `" + defaultModeration + "`"},
			{pattern: "POST /v1/images/generations", dialect: plugins.Images, native: true, usage: (*input).images, answers: jsonOrEvents,
				id: "createImage", docs: "images/create", summary: "Generates images"},
			{pattern: "POST /v1/images/edits", dialect: plugins.Images, native: true, usage: (*input).images, takes: takesForm | takesJSON, answers: jsonOrEvents,
				id: "editImage", docs: "images/createEdit", summary: "Edits images"},
			{pattern: "POST /v1/images/variations", dialect: plugins.Images, native: true, usage: (*input).images, takes: takesForm,
				id: "varyImage", docs: "images/createVariation", summary: "Makes variations of an image"},
			{pattern: "POST /v1/audio/speech", dialect: plugins.Speech, native: true, usage: (*input).speech, answers: []string{"audio/*", "text/event-stream"},
				id: "createSpeech", docs: "audio/createSpeech", summary: "Speaks a text"},
			{pattern: "POST /v1/audio/transcriptions", dialect: plugins.Transcription, native: true, usage: (*input).audio, takes: takesForm,
				answers: append(jsonOrEvents, "text/plain"),
				id:      "createTranscription", docs: "audio/createTranscription", summary: "Transcribes audio"},
			{pattern: "POST /v1/audio/translations", dialect: plugins.Transcription, native: true, usage: (*input).audio, takes: takesForm,
				answers: []string{jsonType, "text/plain"},
				id:      "createTranslation", docs: "audio/createTranslation", summary: "Translates audio to English text"},
			{pattern: "POST /v1/rerank", dialect: plugins.Rerank, native: true, usage: (*input).rerank,
				id: "rerank", docs: "https://docs.cohere.com/reference/rerank", summary: "Ranks documents, in Cohere's format"},
			{pattern: "POST /v2/rerank", dialect: plugins.Rerank, native: true, usage: (*input).rerank,
				id: "rerankV2", docs: "https://docs.cohere.com/reference/rerank", summary: "Ranks documents, in Cohere's format"},
		}},
		{"models", (*Handler).serveResponses, []route{
			{pattern: "GET /v1/responses", dialect: plugins.Responses, takes: opensSocket,
				id: "openResponses", docs: "https://developers.openai.com/docs/guides/websocket-mode", summary: "The same over a WebSocket"},
		}},
		{"models", (*Handler).serveRealtime, []route{
			{pattern: "GET " + realtimePath, dialect: plugins.Realtime, native: true, takes: opensSocket, query: []string{"RealtimeModel"},
				id: "openRealtime", docs: "https://platform.openai.com/docs/guides/realtime-websocket", summary: "OpenAI's Realtime over a WebSocket"},
		}},
		{"responses", (*Handler).serveState, []route{
			{pattern: "GET /v1/responses/{id}", answer: (*responsesapi.Call).GetResponse, query: []string{"Stream", "StartingAfter"}, answers: jsonOrEvents,
				id: "getResponse", docs: "responses/get", summary: "A response that is kept, or generated in the background"},
			{pattern: "DELETE /v1/responses/{id}", answer: (*responsesapi.Call).DeleteResponse,
				id: "deleteResponse", docs: "responses/delete", summary: "Deletes a response; its record stays"},
			{pattern: "GET /v1/responses/{id}/input_items", answer: (*responsesapi.Call).ListInputItems, query: page,
				id: "listInputItems", docs: "responses/input-items", summary: "Lists what a response answered"},
			{pattern: "POST /v1/responses/{id}/cancel", answer: (*responsesapi.Call).CancelResponse,
				id: "cancelResponse", docs: "responses/cancel", summary: "Ends a response that is generated in the background"},
		}},
		{"conversations", (*Handler).serveState, []route{
			{pattern: "POST /v1/conversations", answer: (*responsesapi.Call).CreateConversation, takes: mayTakeJSON,
				id: "createConversation", docs: "conversations/create", summary: "Makes a conversation"},
			{pattern: "GET /v1/conversations/{id}", answer: (*responsesapi.Call).GetConversation,
				id: "getConversation", docs: "conversations/retrieve", summary: "A conversation"},
			{pattern: "POST /v1/conversations/{id}", answer: (*responsesapi.Call).UpdateConversation, takes: takesJSON, fields: []string{"metadata"},
				id: "updateConversation", docs: "conversations/update", summary: "Replaces its metadata"},
			{pattern: "DELETE /v1/conversations/{id}", answer: (*responsesapi.Call).DeleteConversation,
				id: "deleteConversation", docs: "conversations/delete", summary: "Deletes it with its items"},
			{pattern: "GET /v1/conversations/{id}/items", answer: (*responsesapi.Call).ListConversation, query: page,
				id: "listConversationItems", docs: "conversations/list-items", summary: "Lists its items"},
			{pattern: "POST /v1/conversations/{id}/items", answer: (*responsesapi.Call).AddToConversation, takes: takesJSON, fields: []string{"items"},
				id: "addConversationItems", docs: "conversations/create-items", summary: "Adds items"},
			{pattern: "GET /v1/conversations/{id}/items/{item}", answer: (*responsesapi.Call).GetConversationItem,
				id: "getConversationItem", docs: "conversations/get-item", summary: "An item"},
			{pattern: "DELETE /v1/conversations/{id}/items/{item}", answer: (*responsesapi.Call).DeleteConversationItem,
				id: "deleteConversationItem", docs: "conversations/delete-item", summary: "Removes an item"},
		}},
		{"files", (*Handler).serveFiles, []route{
			{pattern: "GET /v1/files", query: []string{"Provider"},
				id: "listFiles", docs: "files/list", summary: "Lists the files at a provider"},
			{pattern: "POST /v1/files", query: []string{"Provider"}, takes: takesForm, fields: []string{"file", "purpose"},
				id: "uploadFile", docs: "files/create", summary: "Uploads a file to a provider"},
			{pattern: "GET /v1/files/{id}",
				id: "getFile", docs: "files/retrieve", summary: "What is known of a file"},
			{pattern: "DELETE /v1/files/{id}",
				id: "deleteFile", docs: "files/delete", summary: "Deletes a file at its provider"},
			{pattern: "GET /v1/files/{id}/content", answers: []string{"*/*"},
				id: "getFileContent", docs: "files/retrieve-contents", summary: "The bytes of a file; the results of a batch are recorded"},
			{pattern: "GET /v1/batches", query: []string{"Provider"},
				id: "listBatches", docs: "batch/list", summary: "Lists the batches at a provider"},
			{pattern: "POST /v1/batches", takes: takesJSON, fields: []string{"input_file_id"},
				id: "createBatch", docs: "batch/create", summary: "Makes a batch at the provider that has its input file"},
			{pattern: "GET /v1/batches/{id}",
				id: "getBatch", docs: "batch/retrieve", summary: "A batch"},
			{pattern: "POST /v1/batches/{id}/cancel",
				id: "cancelBatch", docs: "batch/cancel", summary: "Ends a batch"},
		}},
		{"files", (*Handler).serveFiles, []route{
			{pattern: "GET " + messageBatchesPath, dialect: plugins.Messages, query: []string{"Provider", "BatchLimit", "BatchesAfter", "BatchesBefore"},
				id: "listMessageBatches", docs: "https://platform.claude.com/docs/en/api/messages/batches/list", summary: "Lists the batches of Messages at a provider"},
			{pattern: "POST " + messageBatchesPath, dialect: plugins.Messages, takes: takesJSON, fields: []string{"requests"},
				id: "createMessageBatch", docs: "https://platform.claude.com/docs/en/api/messages/batches/create", summary: "Makes a batch of Messages at the provider that serves the models of all its calls"},
			{pattern: "GET " + messageBatchesPath + "/{id}", dialect: plugins.Messages,
				id: "getMessageBatch", docs: "https://platform.claude.com/docs/en/api/messages/batches/retrieve", summary: "A batch of Messages"},
			{pattern: "DELETE " + messageBatchesPath + "/{id}", dialect: plugins.Messages,
				id: "deleteMessageBatch", docs: "https://platform.claude.com/docs/en/api/messages/batches/delete", summary: "Deletes a batch of Messages that has ended, with its results"},
			{pattern: "POST " + messageBatchesPath + "/{id}/cancel", dialect: plugins.Messages,
				id: "cancelMessageBatch", docs: "https://platform.claude.com/docs/en/api/messages/batches/cancel", summary: "Ends a batch of Messages"},
			{pattern: "GET " + messageBatchesPath + "/{id}/results", dialect: plugins.Messages, answers: []string{"*/*"},
				id: "getMessageBatchResults", docs: "https://platform.claude.com/docs/en/api/messages/batches/results", summary: "The results of a batch of Messages, a line each; they are recorded"},
		}},
		{"catalogue", (*Handler).serveModels, []route{
			{pattern: "GET " + modelsPath, query: []string{"Detail", "ModelLimit", "AfterID", "BeforeID"},
				id: "listModels", docs: "models/list", summary: "Lists the models that can be called; in Anthropic's form for callers that send `Anthropic-Version`"},
			{pattern: "GET " + modelsPath + "/{id}", query: []string{"Detail"},
				id: "getModel", docs: "models/retrieve", summary: "One of them; its id may have slashes"},
			{pattern: "GET " + modelsPath + "/multimodal", query: []string{"Detail"},
				id: "listMultimodalModels", summary: "Those with more than text"},
		}},
		{"catalogue", serveDescription, []route{
			{pattern: "GET " + openAPIPath, id: "describeGateway", summary: "This description"},
		}},
		{"catalogue", (*Handler).serveResource, []route{
			{pattern: "GET " + resourcePath, id: "describeResource", docs: "https://www.rfc-editor.org/rfc/rfc9728",
				summary: "Whose tokens the gateway takes, and how `weir login` gets one"},
		}},
	}
}

// servedRoute is a route with its group.
type servedRoute struct {
	*group
	*route
	method, path string
}

// match is the route of a request, with what stands in the path for {id} and {item}.
type match struct {
	*servedRoute
	id, item string
}

// servedPath has the routes of a path: by method over HTTP, and over a WebSocket.
type servedPath struct {
	methods map[string]*servedRoute
	socket  *servedRoute // nil if the path has no WebSocket
	allow   string       // the value of the header Allow
}

// byPath has all routes. init fills it, because handlers of routes refer to it.
var byPath = make(map[string]*servedPath)

func init() {
	for _, g := range groups() {
		for _, r := range g.routes {
			s := &servedRoute{group: &g, route: &r}
			s.method, s.path, _ = strings.Cut(r.pattern, " ")
			at := byPath[s.path]
			if at == nil {
				at = &servedPath{methods: make(map[string]*servedRoute)}
				byPath[s.path] = at
			}
			switch {
			case r.takes == opensSocket:
				at.socket = s
				continue
			case g.tag == "catalogue":
				at.methods[http.MethodHead] = s
			case g.tag == "models" && r.takes == takesNothing:
				s.takes = takesJSON
			}
			if g.tag == "models" && r.model == "" {
				s.fields = []string{"model"}
			}
			at.methods[s.method] = s
		}
	}
	for _, at := range byPath {
		at.allow = cmp.Or(strings.Join(slices.Sorted(maps.Keys(at.methods)), ", "), http.MethodGet)
	}
}

// findRoutes returns the routes of a path, nil if there are none, and the ids in the path.
func findRoutes(path string) (at *servedPath, id, item string) {
	if at = byPath[path]; at != nil {
		return at, "", ""
	}
	if id, ok := strings.CutPrefix(path, modelsPath+"/"); ok { // ids of models may have slashes
		return byPath[modelsPath+"/{id}"], id, ""
	}
	if id, ok := strings.CutPrefix(path, messageBatchesPath+"/"); ok {
		id, action, acts := strings.Cut(id, "/")
		if path = messageBatchesPath + "/{id}"; acts {
			path += "/" + action
		}
		return byPath[path], id, ""
	}
	parts := strings.Split(path, "/") // "", "v1", "conversations", the id, "items", the item
	if len(parts) > 3 {
		id, parts[3] = parts[3], "{id}"
	}
	if len(parts) > 5 {
		item, parts[5] = parts[5], "{item}"
	}
	return byPath[strings.Join(parts, "/")], id, item
}

func (p *servedPath) all() iter.Seq[*servedRoute] {
	return func(yield func(*servedRoute) bool) {
		for method, s := range p.methods {
			if method == s.method && !yield(s) {
				return
			}
		}
		if p.socket != nil {
			yield(p.socket)
		}
	}
}

// Routes implements paths.Router.
func (*Handler) Routes() (all []paths.Route) {
	for _, at := range byPath {
		for s := range at.all() {
			all = append(all, paths.Route{Method: s.method, Path: s.path, Socket: s == at.socket})
		}
	}
	return all
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	path := strings.TrimSuffix(r.URL.Path, "/")
	at, id, item := findRoutes(path)
	if at == nil {
		if strings.HasPrefix(path, "/v1/responses/") || strings.HasPrefix(path, "/v1/conversations/") {
			return apierror.Write(w, plugins.Responses, plugins.Rejected(http.StatusNotFound, "not_found", "There is no %s here.", path))
		}
		paths.Offer(r.Context(), slices.Collect(maps.Keys(byPath)))
		return next.ServeHTTP(w, r)
	}
	h.allowOrigin(w.Header(), r, at.allow)
	found := at.methods[r.Method]
	if r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") && at.socket != nil {
		found = at.socket
	}
	switch {
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", at.allow+", OPTIONS")
		w.WriteHeader(http.StatusNoContent)
		return nil
	case found == nil:
		return refuseMethod(w, r, at)
	}
	return found.serve(h, w, r, &match{found, id, item})
}

// refuseMethod answers a request with a method, or a protocol, that the path does not have.
func refuseMethod(w http.ResponseWriter, r *http.Request, at *servedPath) error {
	var dialect plugins.Dialect
	for s := range at.all() {
		dialect = s.dialect
	}
	if r.Method == http.MethodGet && len(at.methods) == 0 {
		w.Header().Set("Upgrade", "websocket")
		return apierror.Write(w, dialect, plugins.Rejected(http.StatusUpgradeRequired, "websocket_required", "This endpoint is a WebSocket."))
	}
	if r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return apierror.Write(w, dialect, plugins.Rejected(http.StatusUpgradeRequired, "websocket_unsupported",
			"This endpoint speaks no WebSocket: send a POST."))
	}
	w.Header().Set("Allow", at.allow+", OPTIONS")
	return apierror.Write(w, dialect, plugins.Rejected(http.StatusMethodNotAllowed, "method_not_allowed", "This endpoint takes %s.", at.allow))
}
