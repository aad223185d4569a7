package llmlog

import (
	"net/http"

	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// providerAnswer is the answer of a provider on its way to the client. It is read as it passes.
type providerAnswer struct {
	tap      capture.Tap
	observer plugins.Observer // nil unless the response is one of a call
	closed   bool             // the observer, since the response ended
	later    recording.Later  // what the answer to a GET tells of earlier calls, nil if nothing
}

// open begins to read the body of an answer.
func (a *providerAnswer) open(encoding string) {
	switch {
	case a.observer != nil:
		a.tap.Open(encoding, a.observer)
	case a.later != nil:
		a.tap.Open(encoding, a.later)
	default:
		a.tap.Open(encoding, nil)
	}
}

// close says that the answer ended, and whether all of it has passed.
func (a *providerAnswer) close(complete bool) {
	a.tap.Close()
	if a.later != nil {
		a.later.Close(complete)
		a.later = nil
	}
	if a.observer != nil && !a.closed {
		a.observer.Close()
		a.closed = true
	}
}

// endState returns the end state of an answer with this status that has passed to its end. Weir
// believes an answer that says whether it is complete: it is that of a model, and Weir has read all
// of it. A success that states an error is none, however it is framed. An object without content that
// states none is complete: it may be the receipt for a call that the provider answers later.
func (a *providerAnswer) endState(status int, stream bool) storage.EndState {
	if a.observer == nil || a.tap.Missed() || status != http.StatusOK {
		return storage.Complete
	}
	info := a.observer.Info()
	tells := observe.Finishes(info.Dialect)
	if stream {
		tells = observe.TellsEnd(info.Dialect)
	}
	switch outcome := observe.OutcomeOf(info); {
	case outcome == observe.Failed && (stream || !info.Content || info.ErrorType != ""), // an object with a text and a reason stays an answer
		tells && (outcome == observe.Cut || outcome == observe.Empty && stream):
		return storage.UpstreamAborted
	}
	return storage.Complete
}

func (a *providerAnswer) free() {
	a.tap.Free()
	if a.observer != nil {
		a.observer.Free()
	}
	a.observer = nil
}
