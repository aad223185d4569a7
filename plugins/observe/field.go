package observe

// field is what a value says about a call, whatever its dialect calls it.
type field uint8

const (
	none field = iota

	// Of a response.
	model
	responseID
	finish
	choice      // a choice or candidate
	choiceIndex // which one it is, wherever it stands
	tier
	content       // content that is there when it is not empty
	outputType    // the type of an output item or block, which may be a tool call
	eventType     // what a stream's event calls itself
	sentinel      // the whole event, which may be [DONE]
	done          // true, or an object, in the last event
	shape         // what tells an unknown dialect
	usageMetadata // Google's report, which leaves out what is 0
	// Of a request.
	requestModel
	requestStream
	requestIncludeUsage
	requestTier
	mediaType // the type of a part, which may be a medium
	media     // a medium that is there when it is not empty

	// Of an error.
	failure // an object or a message
	errorType
	errorCode    // named or numbered
	objectName   // "error" in the bodies that are errors themselves
	ownErrorType // their type
	ownErrorCode // their code

	// Of a usage report's lists of counts by modality or lifetime.
	detail        // an element
	detailName    // its modality or lifetime
	inputDetail   // its count, of input,
	cachedDetail  // of input read from a cache,
	writtenDetail // of input written to a cache,
	outputDetail  // of output

	firstCount

	firstError  = failure
	firstDetail = detail
)

// adds tells whether to read the field again would not leave everything as it is.
func (f field) adds() bool { return f >= firstDetail || f == usageMetadata || f == shape }

// The counts that providers report, all in tokens unless said.
const (
	input        = firstCount + iota // the whole input
	uncached                         // the input without what a cache served or took
	toolInput                        // input beside the whole, from tools the provider ran
	audioSeconds                     // the length of audio that input leaves out
	cacheRead
	cacheWrite
	cacheWrite5m
	cacheWrite1h
	inputAudio
	cacheReadAudio
	inputImage
	output   // the output, with or without reasoning
	thoughts // reasoning that output leaves out
	reasoning
	outputAudio
	outputImage
	total
	billedInput
	billedOutput
	webSearches  // in searches
	reportedCost // in billionths of a US dollar
	costInTicks  // the same from xAI, who have ten ticks to that billionth
	// What Bedrock itself counted, beside the model's own report.
	metricUncached
	metricCacheRead
	metricCacheWrite
	metricOutput

	endOfCounts
)
