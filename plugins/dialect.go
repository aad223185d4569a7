package plugins

// Dialect names the wire format of a call: which paths, bodies and stream
// events the provider speaks. Traffic of the zero Dialect, which Weir does not know,
// passes and is recorded without usage.
type Dialect string

// The dialects that package observe knows, one or a few of one vendor a file.
// Others may register more.
const (
	Unknown         Dialect = ""
	Chat            Dialect = "chat"             // OpenAI Chat Completions and those who speak it
	Responses       Dialect = "responses"        // OpenAI Responses
	Compaction      Dialect = "compaction"       // OpenAI's compaction of a conversation of Responses
	InputTokens     Dialect = "input_tokens"     // OpenAI's count of the tokens of a Responses request
	Realtime        Dialect = "realtime"         // OpenAI Realtime
	Live            Dialect = "live"             // Gemini's and Vertex's Live
	LiveSessions    Dialect = "live_sessions"    // OpenAI Live
	Completions     Dialect = "completions"      // OpenAI Completions (legacy)
	Embeddings      Dialect = "embeddings"       // OpenAI Embeddings
	Images          Dialect = "images"           // OpenAI Images
	Transcription   Dialect = "transcription"    // OpenAI Audio, speech to text
	Speech          Dialect = "speech"           // OpenAI Audio, text to speech
	Moderations     Dialect = "moderations"      // OpenAI Moderations
	Decisions       Dialect = "decisions"        // OpenAI Decisions and those who speak it
	Runs            Dialect = "runs"             // agents at the provider: OpenAI Assistants and Agents, Anthropic Managed Agents
	Batches         Dialect = "batches"          // the making of a batch of calls, by OpenAI, Anthropic and Gemini
	Messages        Dialect = "messages"         // Anthropic Messages
	TextCompletions Dialect = "text_completions" // Anthropic Text Completions (legacy)
	CountTokens     Dialect = "count_tokens"     // Anthropic's count of the tokens of a Messages request
	GenerateContent Dialect = "generate_content" // Gemini and Vertex
	EmbedContent    Dialect = "embed_content"    // Gemini's embeddings
	Predict         Dialect = "predict"          // Vertex's and Gemini's images and embeddings
	Interactions    Dialect = "interactions"     // Gemini Interactions
	Converse        Dialect = "converse"         // Bedrock Converse
	Invoke          Dialect = "invoke"           // Bedrock InvokeModel
	CohereChat      Dialect = "cohere_chat"      // Cohere v2 Chat
	CohereText      Dialect = "cohere_text"      // Cohere v1 Chat and Generate
	CohereEmbed     Dialect = "cohere_embed"     // Cohere's embeddings
	Rerank          Dialect = "rerank"           // Cohere's rerank and those who speak it
	OCR             Dialect = "ocr"              // Mistral's reading of documents
	OllamaChat      Dialect = "ollama_chat"      // Ollama /api/chat
	OllamaGenerate  Dialect = "ollama_generate"  // Ollama /api/generate
	OllamaEmbed     Dialect = "ollama_embed"     // Ollama /api/embed
)

// OfResponses reports whether requests are those of the Responses API, or ask for
// something else with the same fields.
func (d Dialect) OfResponses() bool { return d == Responses || d == Compaction || d == InputTokens }

// OfChat reports whether calls have Chat Completions' choices: several answers if the
// request says so, and usage in a stream only if it asks.
func (d Dialect) OfChat() bool { return d == Chat || d == Completions }

// CountsTokens reports whether calls count the tokens of a request, which costs nothing.
func (d Dialect) CountsTokens() bool { return d == CountTokens || d == InputTokens }

// Phase is how far a response has come, as its own events report it.
type Phase uint8

const (
	// Running: nothing has said that the end is near.
	Running Phase = iota
	// Finished: a finish reason was given, and usage or a terminal event may
	// follow (a chat chunk with its finish_reason, before [DONE]).
	Finished
	// Ended: the terminal event of a stream, or the close of the top-level
	// JSON value, was read. Official clients may stop reading here.
	Ended
)

// ResponseInfo is what the traffic of one response says about its call. Text
// that a provider controls is cut to 256 bytes.
type ResponseInfo struct {
	// Dialect is that of the call, or if that is Unknown, the one that the shape of the
	// traffic showed.
	Dialect      Dialect
	Model        string // the model that answered, "" if the provider names none
	ResponseID   string // the provider's id of the response
	Finish       string // the provider's own finish reason, stop reason or status
	ServiceTier  string // the tier that the provider says it served
	InferenceGeo string // the geography in which the provider says it ran the model
	ErrorType    string // the type or code of an error in the body or in the stream
	ErrorMessage string // what the error says, "" if it says nothing
	// Usage is merged field by field; a later report of a field wins.
	Usage Usage
	// Beside is the first part that the provider bills beside Usage, nil if there is none.
	Beside *Billed
	// Content is true once a first piece of content was seen: text, reasoning,
	// refusal, tool call or media, not a role or an opening event.
	Content bool
	// Stream is true once the body is known to be a stream of events, whatever its
	// Content-Type says.
	Stream bool
	// Interrupted says that a translated answer ended for a reason that only its provider has a
	// name for. What came before is an answer, and not a complete one.
	Interrupted bool
	Phase       Phase // only ever grows
}

// Billed is a part of an answer that its ResponseInfo.Usage leaves out and that the
// provider bills nevertheless: another model that it asked, a picture, a summary of the
// conversation.
type Billed struct {
	// Model has the price, "" if it is the model that answered.
	Model string
	// Usage is the zero Usage if the provider does not state how much it bills.
	Usage Usage
	// Next is nil after the last part. A list keeps ResponseInfo comparable.
	Next *Billed
}

// Observer reads one response as it passes, at any chunking and in constant
// memory. It never fails: what it cannot read, it skips.
type Observer interface {
	// Write reads the next bytes of the body. It does not keep p.
	Write(p []byte)
	// Close says that the body ended.
	Close()
	// Info returns what has been learned so far. It belongs to the observer and changes with
	// every Write.
	Info() *ResponseInfo
	// Free lets another response be read in the memory of this one. The caller must not use
	// the observer or its Info afterwards. Calling Free is optional.
	Free()
}

// RequestInfo is what a request body says about the call.
type RequestInfo struct {
	Model        string // the requested model as the body names it, "" if it names none
	Stream       bool   // the body asks for a stream
	IncludeUsage bool   // a chat request asks for usage in its stream
	ServiceTier  string // the tier that was asked for
	User         string // the client's name for its user
	Media        bool   // the body holds an image, audio or file part
}
