package observe

// Field is what a value in the JSON of a request or response says about the
// call, whatever its dialect calls it.
type Field uint8

const (
	none Field = iota

	// Model is the model that a request names, or that answered.
	Model
	// ServiceTier is the tier that was asked for, or served.
	ServiceTier
	// Speed is "fast" where the call was served faster at a price of its own, which
	// counts as its tier.
	Speed
	// InferenceGeo is where the model ran.
	InferenceGeo

	// Stream is true where a request asks for a stream.
	Stream
	// IncludeUsage is true where a request asks for usage in its stream.
	IncludeUsage
	// User is a request's name for the user of its client.
	User
	// Media is an image, audio or file in a request, unless it is empty.
	Media
	// MediaType is the type of a part of a request, which may name a medium.
	MediaType

	// Message is a message of a request's conversation, or the one text that stands for
	// it.
	Message
	// Instructions is what a request tells the model beside its messages.
	Instructions
	// Tools are those that a request offers.
	Tools
	// CacheMark asks the provider to cache what stands before it.
	CacheMark
	// Role is who said a Message.
	Role
	// CacheLife is how long the provider's cache shall keep the request.
	CacheLife
	// CacheKey chooses the provider's cache.
	CacheKey
	// PreviousResponse is the id of a response that the request continues.
	PreviousResponse

	// ResponseID is the provider's id of the response. The first one counts.
	ResponseID
	// FinishReason is why the response ended: a finish reason, stop reason or
	// status. Of several choices the first one's counts.
	FinishReason
	// Choice is one of a response's alternatives.
	Choice
	// ChoiceIndex is the position of a Choice among all choices. The field may be
	// anywhere in its Choice.
	ChoiceIndex
	// Content is text, reasoning, a tool call or media that the model made, unless
	// it is empty.
	Content
	// OutputType is the type of an output item or block: Content if that is a tool
	// call.
	OutputType
	// EventType is what an event of a stream calls itself.
	EventType
	// Done is true, or an object, in the last event of a stream.
	Done
	// Report is an object with a whole report of usage, which leaves out what is 0:
	// it replaces the report before it.
	Report

	// Items is the list of what a response consists of, or of what it has searched for: the
	// SearchQuery and Item values in it replace those of an earlier list.
	Items
	// Item is the type of an output item, such as "web_search_call": like OutputType, and some
	// types are billed by the piece.
	Item
	// ItemAction is what an item of the web search tool does. Opening a page is free.
	ItemAction
	// SearchQuery is one search, billed where no WebSearches states how many were.
	SearchQuery
	// Unstated is billed, and the provider does not state how much.
	Unstated
	// Parts has the usage of what is billed beside the response's usage: a list of Part, or
	// one part if it is an object. The fields within are of Table.inParts.
	Parts
	// Part is one element of Parts.
	Part
	// PictureModel is the model that makes pictures for the one that answers.
	PictureModel

	sentinel // the whole event, which may be [DONE]
	shape    // what tells an unknown dialect

	// Error is an object, or a message, that only an error has.
	Error
	// ErrorMessage is an error's message where another type of value is none.
	ErrorMessage
	// ErrorType is the type of an error.
	ErrorType
	// ErrorCode is the code of an error, a name or a number. A type is better.
	ErrorCode

	objectName   // "error" in the bodies that are errors themselves
	ownErrorType // their type
	ownErrorCode // their code

	// Elements of a usage report's lists of counts by modality or lifetime.
	detail        // an element
	detailName    // its modality or lifetime
	inputDetail   // its count, of input,
	cachedDetail  // of input read from a cache,
	writtenDetail // of input written to a cache,
	outputDetail  // of output
	groundDetail  // of searches

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
	// Input is the whole input.
	Input = firstCount + iota
	// UncachedInput is the input without what a cache served or took.
	UncachedInput
	// InputPart is the input of one of several predictions: they are added up.
	InputPart
	// ToolInput is input beside Input, from tools that the provider ran.
	ToolInput
	// CacheRead is the part of the input that a cache served.
	CacheRead
	// CacheWrite is the part of the input that a cache took.
	CacheWrite
	// CacheWrite5m is the part of CacheWrite that lives for five minutes.
	CacheWrite5m
	// CacheWrite1h is the part of CacheWrite that lives for an hour.
	CacheWrite1h
	// InputAudio is the part of the input that is audio.
	InputAudio
	// CacheReadAudio is the part of CacheRead that is audio.
	CacheReadAudio
	// InputImage is the part of the input that is images.
	InputImage
	// Output is the output, with reasoning or without.
	Output
	// ReasoningBeside is reasoning that Output leaves out.
	ReasoningBeside
	// Reasoning is the part of the output that is reasoning.
	Reasoning
	// ReasoningUnclear is reasoning that Output leaves out if it is more than
	// Output, and else includes: gateways pass on what their upstreams mean.
	ReasoningUnclear
	// OutputAudio is the part of the output that is audio.
	OutputAudio
	// OutputImage is the part of the output that is images.
	OutputImage
	// Total is input and output. It decides where the counts contradict each other.
	Total
	// BilledInput is the input that is charged, where that is not Input.
	BilledInput
	// BilledOutput is the output that is charged, where that is not Output.
	BilledOutput
	// WebSearches is a number of web searches.
	WebSearches
	// SearchUnits is a number of searches of a reranker.
	SearchUnits
	// Image is one image that was made: they are counted.
	Image
	// Pages is a number of pages that were read.
	Pages
	// Annotation is text whose presence changes the price of Pages.
	Annotation
	// AudioSeconds is the length of the audio that was heard, in seconds.
	AudioSeconds
	// Cost is what the provider charged, in US dollars, as a number or as text.
	Cost
	// CostInTicks is the same in xAI's unit, ten billionths of a US dollar. 0 says
	// nothing.
	CostInTicks
	// UpstreamCost is what the provider's own upstream charged to the caller's
	// account there, in US dollars.
	UpstreamCost
	// OwnAccount is true where the call was made with the caller's own account at
	// the upstream, so that UpstreamCost is part of what it cost.
	OwnAccount
	// MeteredInput and the three after it are what Bedrock counted, beside the
	// report of the model. The model's own counts win.
	MeteredInput
	// MeteredCacheRead is never part of MeteredInput.
	MeteredCacheRead
	// MeteredCacheWrite is never part of MeteredInput.
	MeteredCacheWrite
	// MeteredOutput is the whole output.
	MeteredOutput

	endOfCounts
)

// inPart marks a Field that says something of the Part under way, not of the response.
const inPart Field = 1 << 7

const _ = uint(inPart - endOfCounts) // no Field has that bit
