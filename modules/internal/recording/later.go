package recording

import (
	"cmp"
	"context"
	"hash/maphash"
	"net/http"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// Later reads the answer to a GET that reports on earlier calls.
type Later interface {
	// Write reads the next uncompressed bytes. It does not keep p.
	Write(p []byte)
	// Close says that the body has ended. whole is false if a part of it is missing.
	Close(complete bool)
}

// Later returns the reader of the answer to a GET, or nil if the answer says nothing about earlier
// calls. header is the header of the answer.
func (x *Exchange) Later(header http.Header, maxBody int64) Later {
	if of, ok := observe.ResultsOf(x.Record.Path); ok {
		return x.Results(of, maxBody)
	}
	switch d, id, ok := observe.Polled(x.Record.Provider, x.Record.Path); {
	case !ok:
		return nil
	case d == plugins.Batches:
		return &batchPoll{x: x, id: id}
	default:
		return &responsePoll{x, id, observe.New(d, x.Record.Provider, header)}
	}
}

// responsePoll reads the answer to a client that polls a background response, or a session of an agent.
// The call that created the response ended before the model did, so its record has no usage. The first
// poll that reports the usage adds it to that record. A session goes on: each poll that reports more
// usage, or another state, replaces that of the record.
type responsePoll struct {
	x        *Exchange
	id       string // the provider's id of the response
	observer plugins.Observer
}

// Write implements Later.
func (p *responsePoll) Write(b []byte) { p.observer.Write(b) }

// Close implements Later.
func (p *responsePoll) Close(bool) {
	p.observer.Close()
	defer p.observer.Free()
	x, seen := p.x, *p.observer.Info()
	isObject := strings.HasSuffix(x.Record.Path, p.id)
	ended := isObject && seen.Finish == sessionEnded // perhaps without any use
	if isObject && seen.ResponseID != p.id || seen.Usage == (plugins.Usage{}) && !ended {
		return
	}
	defer lockResponse(x.Record.Org, p.id)()
	found, err := x.recorder.Response(context.WithoutCancel(x.ctx), x.Record.Org, p.id)
	if err != nil || found.Provider != x.Record.Provider {
		return
	}
	isSession := found.Dialect == plugins.Runs && observe.IsAgentSession(found.Path)
	if !isSession && (found.Usage != (plugins.Usage{}) || seen.Usage == (plugins.Usage{})) {
		return
	}
	seen.Finish = cmp.Or(seen.Finish, found.Finish) // an event of a session may have its usage alone
	if isSession {
		// Polls come in any order, and some leave out what others have. An error of the session is none
		// of the call that created it.
		seen.Usage.Raise(found.Usage)
		seen.ErrorType, seen.ServiceTier = found.ErrorType, found.ServiceTier
		if found.Finish == sessionEnded {
			seen.Finish = sessionEnded
		}
	}
	if seen.Usage == found.Usage && seen.Finish == found.Finish {
		return
	}
	seen.ResponseID, seen.Model = p.id, cmp.Or(seen.Model, found.ResponseModel)
	if err := x.site.amend(x.recorder, found, &seen); err != nil {
		x.site.Logger.Error("the usage of a call is lost", zap.Stringer("id", found.ID), zap.String("store", x.site.Store), zap.Error(err))
	}
}

// amending serializes the changes to the record of a response. Each stripe has many responses.
var amending [64]sync.Mutex

var amendingSeed = maphash.MakeSeed()

// lockResponse locks the record of a response until unlock. The lock spans the lookup and the append in
// the store: of two polls that end together, the second has to see what the first one wrote. Otherwise
// the older usage could replace the newer one, and metrics would count it twice.
func lockResponse(org, id string) (unlock func()) {
	m := &amending[maphash.String(amendingSeed, org+"\x00"+id)%uint64(len(amending))]
	m.Lock()
	return m.Unlock
}

// maxPolledObject is the size of the largest object of a batch or a session that is read, in bytes.
const maxPolledObject = 1 << 20

// batchPoll reads the answer to a client that polls a batch.
type batchPoll struct {
	x    *Exchange
	id   string
	body []byte
}

// Write implements Later.
func (p *batchPoll) Write(b []byte) {
	if len(p.body)+len(b) <= maxPolledObject {
		p.body = append(p.body, b...)
	}
}

// Close implements Later.
func (p *batchPoll) Close(bool) { p.x.Earlier().SeeBatch(p.id, p.body) }
