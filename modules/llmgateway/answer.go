package llmgateway

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// startStream begins the answer as a stream of events, once.
func (a *attempt) startStream(upstream http.Header) {
	if a.begun {
		return
	}
	a.begun = true
	a.answer()
	header := a.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	a.passHeaders(upstream)
	a.w.WriteHeader(http.StatusOK)
}

// passHeaders sets what the client gets of the provider's headers, and ours.
func (a *attempt) passHeaders(upstream http.Header) {
	for _, name := range [...]string{"X-Request-Id", "Request-Id"} {
		if id := upstream.Get(name); id != "" {
			a.w.Header().Set(name, id)
		}
	}
	if a.prompt != nil {
		a.announce(a.prompt.Warnings)
	} else {
		a.announce(a.notes)
	}
}

// write sends whole events, at once. When the client is gone, that is all there
// is to say.
func (a *attempt) write(events []byte) {
	if a.gone != nil {
		return
	}
	a.wrote = time.Now()
	if _, a.gone = a.w.Write(events); a.gone == nil {
		if err := http.NewResponseController(a.w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			a.gone = err // a writer that cannot flush still has a client
		}
	}
}

// hear takes the time when the first content of a stream comes.
func (a *attempt) hear() {
	if !a.record.TimeToFirstToken.Valid && a.seen().Content {
		a.record.TimeToFirstToken = plugins.KnownDuration(time.Since(a.started))
	}
}

// object answers one JSON object. Its record stands before it goes out.
func (a *attempt) object(body []byte, upstream http.Header) {
	a.answer()
	a.keep(body)
	a.commit()
	header := a.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	a.passHeaders(upstream)
	a.w.WriteHeader(http.StatusOK)
	_, a.gone = a.w.Write(body)
}

// keep makes body the one of the record.
func (a *attempt) keep(body []byte) {
	if a.record.ResponseOmitted {
		return
	}
	kept := body[:min(int64(len(body)), a.h.MaxBody)]
	a.content.Response = storage.Body{Type: "application/json", Data: kept}
	a.record.ResponseTruncated = len(kept) < len(body)
}

// finish ends an attempt that answered. whole says that the provider came to
// its end.
func (a *attempt) finish(whole bool) {
	switch {
	case whole && a.gone == nil:
		a.record.EndState = storage.Complete
	case a.gone != nil || a.ctx.Err() != nil:
		a.record.EndState = storage.ClientAborted
	default:
		a.record.EndState = storage.UpstreamAborted
	}
	a.commit()
	a.report()
}
