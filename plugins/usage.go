package plugins

// Usage is what one call consumed by its provider's own report, in one
// convention for all of them (that of OpenAI's Responses): Input counts
// everything charged as input, Output everything charged as output, and the
// other token counts are parts of those two. All are tokens unless said.
type Usage struct {
	Input  Count // the whole input: uncached, read from and written to a cache
	Output Count // the whole output, reasoning included

	CacheRead      Count // the part of Input that came from the provider's cache
	CacheWrite     Count // the part of Input written to the provider's cache
	CacheWrite1h   Count // the part of CacheWrite that lives for an hour, at a price of its own
	InputAudio     Count // the part of Input that was audio
	CacheReadAudio Count // the part of CacheRead that was audio
	InputImage     Count // the part of Input that was images

	Reasoning   Count // the part of Output spent on thinking
	OutputAudio Count // the part of Output that was audio
	OutputImage Count // the part of Output that was images

	// BilledInput and BilledOutput are set if a provider charges for other counts than it
	// processed (Cohere's billed_units).
	BilledInput, BilledOutput Count
	WebSearches               Count // searches that are charged by the piece
	// SearchUnits are the searches that a reranker charges (Cohere's
	// billed_units.search_units: a query with up to a hundred documents).
	SearchUnits Count
	Images      Count // images made, if they are charged by the piece
	// Pages are the pages read from documents (Mistral's usage_info.pages_processed),
	// unknown if something dearer was asked for, such as annotations.
	Pages Count
	// AudioDuration is the length of the audio heard, if it is charged by time (OpenAI's
	// usage.seconds of a transcription, Mistral's usage.prompt_audio_seconds).
	AudioDuration Duration
	// ReportedCost is what the provider says it charged (OpenRouter, Perplexity, xAI).
	ReportedCost Cost
}

// BatchTier is the service tier by which the catalogue prices the calls of batches.
const BatchTier = "batch"

// Total is Input plus Output, unknown when either is.
func (u Usage) Total() Count {
	return u.Input.Both(u.Output)
}

// counts are the counts of u that Add, Merge and Raise treat alike: all but Input and Output.
func (u *Usage) counts() [15]*Count {
	return [...]*Count{
		&u.CacheRead, &u.CacheWrite, &u.CacheWrite1h, &u.InputAudio, &u.CacheReadAudio, &u.InputImage,
		&u.Reasoning, &u.OutputAudio, &u.OutputImage, &u.BilledInput, &u.BilledOutput,
		&u.WebSearches, &u.SearchUnits, &u.Images, &u.Pages,
	}
}

// Add adds what another call consumed. The input and the output are unknown where one of
// the two calls did not report them, and of their parts those that neither reported.
func (u *Usage) Add(other Usage) {
	u.Input, u.Output = u.Input.Both(other.Input), u.Output.Both(other.Output)
	for i, count := range u.counts() {
		*count = count.Plus(*other.counts()[i])
	}
	u.AudioDuration = u.AudioDuration.Plus(other.AudioDuration)
	u.ReportedCost = u.ReportedCost.Plus(other.ReportedCost)
}

// Merge takes over what patch knows: a later report of a count wins.
func (u *Usage) Merge(patch Usage) {
	u.Input, u.Output = patch.Input.Or(u.Input), patch.Output.Or(u.Output)
	for i, count := range u.counts() {
		*count = patch.counts()[i].Or(*count)
	}
	u.AudioDuration = patch.AudioDuration.Or(u.AudioDuration)
	u.ReportedCost = patch.ReportedCost.Or(u.ReportedCost)
}

// Raise takes over each number of other that is larger, or unknown in u: reports of what grows may
// come in any order.
func (u *Usage) Raise(other Usage) {
	u.Input, u.Output = u.Input.Larger(other.Input), u.Output.Larger(other.Output)
	for i, count := range u.counts() {
		*count = count.Larger(*other.counts()[i])
	}
	u.AudioDuration = u.AudioDuration.Larger(other.AudioDuration)
	u.ReportedCost = u.ReportedCost.Larger(other.ReportedCost)
}
