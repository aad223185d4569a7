package plugins

// Reason is why a model stopped. Plugins choose it by the provider's own
// finish reason; what it means to the client is decided here alone.
type Reason uint8

const (
	// ReasonNone: the provider has not said that the model stopped.
	ReasonNone Reason = iota
	// ReasonStop: the model was done: end of turn, stop sequence, tool calls.
	ReasonStop
	// ReasonMaxOutputTokens: a limit of tokens or of the context cut it off.
	ReasonMaxOutputTokens
	// ReasonContentFilter: the provider cut it off or blocked it for its content.
	ReasonContentFilter
	// ReasonError: generation failed, and the provider says no more than that.
	ReasonError
)

// outcomes are what a response becomes by its reason. There is no
// requires_action: a turn that ends in calls is completed.
var outcomes = [...]struct{ status, incomplete string }{
	ReasonNone:            {status: "failed"},
	ReasonStop:            {status: "completed"},
	ReasonMaxOutputTokens: {status: "incomplete", incomplete: "max_output_tokens"},
	ReasonContentFilter:   {status: "incomplete", incomplete: "content_filter"},
	ReasonError:           {status: "failed"},
}
