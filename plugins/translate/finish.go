package translate

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

// Reasons are the reasons to stop by the provider's names for them.
type Reasons map[string]Reason

// Of returns the reason of a name. A name that is new is one to stop.
func (r Reasons) Of(name string) Reason {
	if reason, ok := r[name]; ok {
		return reason
	}
	return ReasonStop
}

// The statuses of a response and of its items.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
)

// outcomes are what a response becomes by its reason, and its finish reason by
// the names of the Responses API. There is no requires_action: a turn that ends
// in calls is completed.
var outcomes = [...]struct{ status, finish string }{
	ReasonNone:            {status: statusFailed},
	ReasonStop:            {status: statusCompleted, finish: statusCompleted},
	ReasonMaxOutputTokens: {status: statusIncomplete, finish: "max_output_tokens"},
	ReasonContentFilter:   {status: statusIncomplete, finish: "content_filter"},
	ReasonError:           {status: statusFailed, finish: statusFailed},
}
