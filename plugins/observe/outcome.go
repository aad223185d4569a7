package observe

import (
	"bytes"
	"slices"

	"github.com/weirhq/weir/plugins"
)

// Outcome is what an answer is once its body has ended. Every lane asks OutcomeOf, and nothing
// else, whether an answer is complete.
type Outcome uint8

const (
	// Cut: the body ended, and nothing in it says that the answer has.
	Cut Outcome = iota
	// Empty: the answer ended without content and without a finish reason.
	Empty
	// Failed: the provider states that it failed, before or after content.
	Failed
	// Ended: the dialect says that the answer is over.
	Ended
)

// OutcomeOf returns the outcome of an answer whose body has come to its end. Answers of an
// unknown dialect, and those that are not JSON, do not tell theirs: they are Cut.
func OutcomeOf(seen *plugins.ResponseInfo) Outcome {
	d := lookup(seen.Dialect)
	switch {
	case seen.ErrorType != "" && seen.Finish == "", slices.Contains(d.Failures, seen.Finish):
		return Failed
	case seen.Phase == plugins.Running, seen.Stream && seen.Dialect == plugins.Responses && seen.Finish == "": // the latter ends in the [DONE] of Chat
		return Cut
	case slices.Contains(d.Interruptions, seen.Finish) && !seen.Content:
		return Failed
	case d.finishes && seen.Finish == "" && !seen.Content:
		return Empty
	}
	return Ended
}

// Error returns what the client is told of an answer that is not Ended and states no error.
func (o Outcome) Error() *plugins.Error {
	switch o {
	case Empty:
		return plugins.Upstream("The provider's answer is empty.")
	case Failed:
		return plugins.Refused(0, "")
	}
	return plugins.Upstream("The upstream stream ended early.")
}

// Interrupted reports whether the finish reason of an answer says that the provider broke it off: what
// came before is an answer, and not a complete one.
func Interrupted(seen *plugins.ResponseInfo) bool {
	return seen.Interrupted || slices.Contains(lookup(seen.Dialect).Interruptions, seen.Finish)
}

// Finishes reports whether answers of dialect d have finish reasons.
func Finishes(d plugins.Dialect) bool { return lookup(d).finishes }

// EndsInDone reports whether a stream has the [DONE] of Chat Completions in place of the last event
// of its own dialect: gateways write it whatever became of the answer.
func EndsInDone(d plugins.Dialect, stream []byte) bool {
	last := lookup(d).LastEvents
	return len(last) > 0 && bytes.Contains(stream, []byte("data: [DONE]")) &&
		!slices.ContainsFunc(last, func(name string) bool { return bytes.Contains(stream, []byte(`"`+name+`"`)) })
}

// TellsEnd reports whether streams of dialect d say when they are over.
func TellsEnd(d plugins.Dialect) bool {
	r := lookup(d)
	return r.finishes || len(r.LastEvents) > 0
}
