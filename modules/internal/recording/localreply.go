package recording

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/modules/internal/streamusage"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// LocalReply is an answer that Weir gives itself, in place of a provider: an error, the answer to
// an equal call, an estimate. See the documentation of the package. Exchange.Reply must know of it
// before a client does: otherwise it costs what a provider would take for it.
type LocalReply struct {
	Status int
	Body   storage.Body // in the client's dialect, without Content-Encoding
	// Error is the error in the body, nil for an answer.
	Error *plugins.Error
	// Hit is the entry of Weir's cache that has the body, nil for any other reply.
	Hit *cache.Hit
}

// Refuse returns the reply for an error, with the attempts that led to it.
func Refuse(d plugins.Dialect, e *plugins.Error, attempts ...apierror.Attempt) *LocalReply {
	return &LocalReply{Status: e.Status, Body: storage.Body{Type: "application/json", Data: apierror.Body(d, e, attempts...)}, Error: e}
}

// Repeat returns the reply that has the answer to an equal call.
func Repeat(hit *cache.Hit) *LocalReply {
	return &LocalReply{Status: http.StatusOK, Body: hit.Body, Hit: hit}
}

// CacheHit returns the entry of Weir's cache that has the body, nil for any other reply. a may be nil.
func (a *LocalReply) CacheHit() *cache.Hit {
	if a == nil {
		return nil
	}
	return a.Hit
}

func (a *LocalReply) streams() bool { return a.Hit != nil && a.Hit.Record.Stream }

// Write answers a client. It fails if the client has left.
func (a *LocalReply) Write(w http.ResponseWriter) error {
	header := w.Header()
	switch {
	case a.Error != nil:
		apierror.SetHeader(header, a.Error)
	case a.Hit != nil:
		a.Hit.SetHeader(header)
	}
	if !a.streams() {
		header.Set("Content-Type", a.Body.Type)
		header.Set("Content-Length", strconv.Itoa(len(a.Body.Data)))
		w.WriteHeader(a.Status)
		_, err := w.Write(a.Body.Data)
		return err
	}
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	if a.Hit.HidesUsage {
		filter := streamusage.NewFilter(w)
		defer filter.Close()
		w = filter
	}
	w.WriteHeader(a.Status)
	_, err := w.Write(a.Body.Data)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if errors.Is(err, http.ErrNotSupported) { // a writer that cannot flush still has a client
		return nil
	}
	return err
}

// Response returns the reply as a provider's response to a request.
func (a *LocalReply) Response(req *http.Request) *http.Response {
	resp := &http.Response{
		Status: strconv.Itoa(a.Status) + " " + http.StatusText(a.Status), StatusCode: a.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: make(http.Header), Body: io.NopCloser(bytes.NewReader(a.Body.Data)), ContentLength: int64(len(a.Body.Data)),
	}
	if a.Body.Type != "" {
		resp.Header["Content-Type"] = []string{a.Body.Type}
	}
	if a.streams() {
		resp.ContentLength = -1
	} else {
		resp.Header["Content-Length"] = []string{strconv.Itoa(len(a.Body.Data))}
	}
	return resp
}

// Reply sets what the record of a call says of the reply, and that an answer costs nothing.
func (x *Exchange) Reply(a *LocalReply) {
	x.Refusal, x.Local = a.Error, nil
	if a.Error == nil {
		x.Local = a
	}
	if a.Hit == nil {
		return
	}
	r, of := &x.Record, a.Hit.Record // of an equal call
	r.AnswerCache, r.CacheReferenceID, r.SavedCost = storage.CacheHit, of.ID, of.Cost
	r.Provider, r.Account, r.Arm, r.TargetURL, r.Path = of.Provider, of.Account, of.Arm, of.TargetURL, of.Path
	r.ResponseModel, r.ResponseID, r.Finish, r.ServiceTier, r.InferenceGeo, r.Stream = of.ResponseModel, of.ResponseID, of.Finish, of.ServiceTier, of.InferenceGeo, of.Stream
	r.Subscription, r.PassthroughBilling = false, false
	if r.Stream {
		r.TimeToFirstToken = plugins.KnownDuration(time.Since(x.clock.started))
	}
}

// MaxError bounds the stored part of the body of an error, in bytes.
const MaxError = 64 << 10

// Keep writes a reply into the record, and at most maxBody bytes of an answer. A reply that passes
// an observer does not need it.
func (x *Exchange) Keep(a *LocalReply, maxBody int64) {
	r := &x.Record
	r.Status = plugins.Known(int64(a.Status))
	if a.Error != nil {
		r.ErrorType, maxBody = a.Error.Type, MaxError
	} else {
		r.ResponseBytes = int64(len(a.Body.Data))
	}
	x.Kept.Response(r, a.Body, maxBody, false)
}
