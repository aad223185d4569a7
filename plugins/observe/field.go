package observe

// Field is the meaning of a value in the JSON of a request or response. Dialects have
// different names for the same field.
type Field uint8

// What requests and responses say, but for counts.
const (
	none Field = iota

	Model        // the model that a request names, or that answered
	ServiceTier  // the tier that was asked for, or served
	Speed        // "fast" if the call was served faster at a price of its own: counts as the tier
	InferenceGeo // where the model ran

	Stream       // true if a request asks for a stream
	IncludeUsage // true if a request asks for usage in its stream
	User         // a request's name for the user of its client
	Media        // an image, audio or file in a request, unless it is empty
	MediaType    // the type of a part of a request, which may name a medium

	Message          // a message of a request's conversation, or the one text that stands for it
	Instructions     // what a request tells the model beside its messages
	Tools            // the tools that a request offers
	CacheMark        // asks the provider to cache what stands before it
	Role             // who said a Message
	CacheLife        // how long the provider's cache shall keep the request
	CacheKey         // chooses the provider's cache
	PreviousResponse // the id of a response that the request continues

	ResponseID   // the provider's id of the response; the first one counts
	FinishReason // a finish reason, stop reason or status; of several choices the first one's counts
	Choice       // one of a response's alternatives
	ChoiceIndex  // the position of a Choice among all choices, anywhere in its Choice
	Content      // text, reasoning, a tool call or media that the model made, unless it is empty
	OutputType   // the type of an output item or block: Content if that is a tool call
	EventType    // what an event of a stream calls itself
	Done         // true, or an object, in the last event of a stream
	Report       // a whole report of usage, without what is 0: replaces the report before it

	Items        // a list of output items or of searches: Item and SearchQuery in it replace earlier ones
	Item         // an OutputType of which some are billed by the piece, such as "web_search_call"
	ItemAction   // what an item of the web search tool does; opening a page is free
	SearchQuery  // one search, billed unless WebSearches states how many there were
	Unstated     // is billed, and the provider does not state how much
	Parts        // a list of Part, or one part: usage billed beside the response's; see Table.inParts
	Part         // one element of Parts
	PictureModel // the model that makes pictures for the one that answers

	sentinel // the whole event, which may be [DONE]
	shape    // what tells an unknown dialect

	Error        // an object, or a message, that only an error has
	ErrorMessage // the message of an error, if it is text: nothing else has it
	ErrorText    // the message of an error, if it is text
	ErrorType    // the type of an error
	ErrorCode    // the code of an error, a name or a number; a type is better
	objectName   // "error" in the bodies that are errors themselves
	ownErrorType // their type
	ownErrorCode // their code
	ownErrorText // their message

	// Elements of a usage report's lists of counts by modality or lifetime.
	detail        // an element
	detailName    // its modality or lifetime
	inputDetail   // its count of input
	cachedDetail  // its count of input read from a cache
	writtenDetail // its count of input written to a cache
	outputDetail  // its count of output
	groundDetail  // its count of searches

	firstCount

	firstError  = Error
	firstDetail = detail
)

// again reports whether reading the field a second time could change anything.
func (f Field) again() bool {
	return f >= firstDetail || f == Report || f == shape || Items <= f && f <= Part
}

// The counts of a usage report, in tokens unless they say otherwise. The last
// report of a count wins. See plugins.Usage for the totals they make.
const (
	Input          = firstCount + iota // the whole input
	EstimatedInput                     // the whole input, or an estimate of it from before the cache was read
	UncachedInput                      // the input without what a cache served or took
	InputPart                          // the input of one of several predictions, which are added up
	ToolInput                          // input beside Input, from tools that the provider ran
	CacheRead                          // the part of the input that a cache served
	CacheWrite                         // the part of the input that a cache took
	CacheWrite5m                       // the part of CacheWrite that lives for five minutes
	CacheWrite1h                       // the part of CacheWrite that lives for an hour
	InputAudio                         // the part of the input that is audio
	CacheReadAudio                     // the part of CacheRead that is audio
	InputImage                         // the part of the input that is images

	Output           // the output, with reasoning or without
	ReasoningBeside  // reasoning that Output leaves out
	Reasoning        // the part of the output that is reasoning
	ReasoningUnclear // reasoning that Output leaves out if it is more than Output, and else includes
	OutputAudio      // the part of the output that is audio
	OutputImage      // the part of the output that is images
	Total            // input and output; decides if the counts contradict each other
	BilledInput      // the input that is charged, if that is not Input
	BilledOutput     // the output that is charged, if that is not Output

	WebSearches  // a number of web searches
	SearchUnits  // a number of searches of a reranker
	Image        // one image that was made: they are counted
	Pages        // a number of pages that were read
	Annotation   // text whose presence changes the price of Pages
	AudioSeconds // the length of the audio that was heard, in seconds

	Cost         // what the provider charged, in US dollars, as a number or as text
	CostInCents  // Cost in hundredths, as text; 0 says nothing, because the cost is rounded
	Currency     // the currency of Cost, which is unknown in another one than USD
	CostInTicks  // Cost in xAI's unit, ten billionths of a US dollar; 0 says nothing
	UpstreamCost // what the provider's upstream charged to the caller's account there, in US dollars
	OwnAccount   // true if the caller's account at the upstream paid, beside Cost

	// What Bedrock counted, beside the report of the model, whose own counts win.
	MeteredInput      // the input without what a cache served or took
	MeteredCacheRead  // what a cache served
	MeteredCacheWrite // what a cache took
	MeteredOutput     // the whole output

	endOfCounts
)

// inPart marks a Field that says something of the Part under way, not of the response.
const inPart Field = 1 << 7

const _ = uint(inPart - endOfCounts) // no Field has that bit
