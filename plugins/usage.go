package plugins

// Usage is what one call consumed by its provider's own report, in one
// convention for all of them (that of OpenAI's Responses): Input counts
// everything charged as input, Output everything charged as output, and the
// other token counts are parts of those two. All are tokens unless said.
type Usage struct {
	// Input is the whole input: uncached, read from and written to a cache.
	Input Count
	// Output is the whole output, reasoning included.
	Output Count

	// CacheRead is the part of Input that came from the provider's cache.
	CacheRead Count
	// CacheWrite is the part of Input written to the provider's cache.
	CacheWrite Count
	// CacheWrite1h is the part of CacheWrite with a life of one hour, which
	// Anthropic and Bedrock price apart from the default of five minutes.
	CacheWrite1h Count
	// InputAudio is the part of Input that was audio.
	InputAudio Count
	// CacheReadAudio is the part of CacheRead that was audio.
	CacheReadAudio Count
	// InputImage is the part of Input that was images.
	InputImage Count

	// Reasoning is the part of Output spent on thinking.
	Reasoning Count
	// OutputAudio is the part of Output that was audio.
	OutputAudio Count
	// OutputImage is the part of Output that was images.
	OutputImage Count

	// BilledInput and BilledOutput are set where a provider charges for other
	// counts than it processed (Cohere's billed_units).
	BilledInput, BilledOutput Count
	// WebSearches is the number of searches that are charged by the piece.
	WebSearches Count
	// SearchUnits is the number of searches that a reranker charges (Cohere's
	// billed_units.search_units: a query with up to a hundred documents).
	SearchUnits Count
	// Images is the number of images made, where they are charged by the piece.
	Images Count
	// Pages is the number of pages read from documents, where they are charged
	// by the piece (Mistral's usage_info.pages_processed). Leave it unknown if
	// something dearer was asked for, such as annotations.
	Pages Count
	// AudioDuration is the length of the audio heard, where it is charged by
	// time (OpenAI's usage.seconds of a transcription, Mistral's
	// usage.prompt_audio_seconds).
	AudioDuration Duration
	// ReportedCost is what the provider says it charged (OpenRouter, Perplexity,
	// xAI).
	ReportedCost Cost
}

// Total is Input plus Output, unknown when either is.
func (u Usage) Total() Count {
	return u.Input.Both(u.Output)
}

// Add adds what another call consumed. The input and the output are unknown where one of
// the two calls did not report them, and of their parts those that neither reported.
func (u *Usage) Add(other Usage) {
	u.Input = u.Input.Both(other.Input)
	u.Output = u.Output.Both(other.Output)
	u.CacheRead = u.CacheRead.Plus(other.CacheRead)
	u.CacheWrite = u.CacheWrite.Plus(other.CacheWrite)
	u.CacheWrite1h = u.CacheWrite1h.Plus(other.CacheWrite1h)
	u.InputAudio = u.InputAudio.Plus(other.InputAudio)
	u.CacheReadAudio = u.CacheReadAudio.Plus(other.CacheReadAudio)
	u.InputImage = u.InputImage.Plus(other.InputImage)
	u.Reasoning = u.Reasoning.Plus(other.Reasoning)
	u.OutputAudio = u.OutputAudio.Plus(other.OutputAudio)
	u.OutputImage = u.OutputImage.Plus(other.OutputImage)
	u.BilledInput = u.BilledInput.Plus(other.BilledInput)
	u.BilledOutput = u.BilledOutput.Plus(other.BilledOutput)
	u.WebSearches = u.WebSearches.Plus(other.WebSearches)
	u.SearchUnits = u.SearchUnits.Plus(other.SearchUnits)
	u.Images = u.Images.Plus(other.Images)
	u.Pages = u.Pages.Plus(other.Pages)
	u.AudioDuration = u.AudioDuration.Plus(other.AudioDuration)
	u.ReportedCost = u.ReportedCost.Plus(other.ReportedCost)
}

// Merge takes over what patch knows: a later report of a count wins.
func (u *Usage) Merge(patch Usage) {
	u.Input = patch.Input.Or(u.Input)
	u.Output = patch.Output.Or(u.Output)
	u.CacheRead = patch.CacheRead.Or(u.CacheRead)
	u.CacheWrite = patch.CacheWrite.Or(u.CacheWrite)
	u.CacheWrite1h = patch.CacheWrite1h.Or(u.CacheWrite1h)
	u.InputAudio = patch.InputAudio.Or(u.InputAudio)
	u.CacheReadAudio = patch.CacheReadAudio.Or(u.CacheReadAudio)
	u.InputImage = patch.InputImage.Or(u.InputImage)
	u.Reasoning = patch.Reasoning.Or(u.Reasoning)
	u.OutputAudio = patch.OutputAudio.Or(u.OutputAudio)
	u.OutputImage = patch.OutputImage.Or(u.OutputImage)
	u.BilledInput = patch.BilledInput.Or(u.BilledInput)
	u.BilledOutput = patch.BilledOutput.Or(u.BilledOutput)
	u.WebSearches = patch.WebSearches.Or(u.WebSearches)
	u.SearchUnits = patch.SearchUnits.Or(u.SearchUnits)
	u.Images = patch.Images.Or(u.Images)
	u.Pages = patch.Pages.Or(u.Pages)
	u.AudioDuration = patch.AudioDuration.Or(u.AudioDuration)
	u.ReportedCost = patch.ReportedCost.Or(u.ReportedCost)
}
