package recording

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// Exchange owns the record of one call from Begin to Close. A version of the
// record is committed before the client can see the end of its answer, and
// another one at the end if anything has changed since.
//
// A call of the gateway is one Exchange, too, and so is each Attempt at it. The record of
// an attempt that answers becomes the call's. An attempt that another one follows has a
// record of its own.
type Exchange struct {
	Record storage.Record
	// Kept is what is kept of the bodies.
	Kept storage.Kept
	// Answer observes the answer, nil before there is one.
	Answer interface{ Info() *plugins.ResponseInfo }
	// TargetModel is the model that the gateway asked the provider for. An answer
	// that names none, or one without a price, is this one's.
	TargetModel string
	// Refusal is the error of Weir with which the call ended: no provider answered it. It is nil
	// if a provider did.
	Refusal *plugins.Error
	// Local is the answer that Weir gives itself, without a provider: it costs nothing. It is nil if a
	// provider answers, and for an error, which Refusal has.
	Local *LocalReply
	// Cut says that a budget ended the stream.
	Cut bool
	// Account tells the accounts of providers apart, whose caches are their own: see
	// lineage.Hash.
	Account uint64
	// Target is the account with the model that the gateway chose, 0 where nobody chose: see
	// Warm.
	Target uint64
	// Equals are the targets that the gateway could as well have chosen for a conversation
	// whose cache the chosen one has, itself included; 0 if it has not.
	Equals int
	// Bill, if any, is charged what each version costs before the version is appended: a
	// crash must not leave a record that is not paid.
	Bill *money.Bill

	costing costing
	// silent says that the provider broke off without a word, and that the record's ErrorType is Weir's.
	silent    bool
	site      *Site
	ctx       context.Context // of the client's request
	recorder  Recorder
	release   func()        // the store
	claimed   bool          // the record's id was the client's choice
	call      *Exchange     // that this is an attempt at, unless it is superseded
	link      *lineage.Link // nil unless the call is one of a conversation
	clock     clock
	committed version
	lost      bool
}

// clock measures how long an exchange takes.
type clock struct {
	started time.Time
	stopped time.Time // zero while the clock runs
}

// version is what tells two versions of a record apart.
type version struct {
	appended                    bool
	id                          uuid.UUID
	end                         storage.EndState
	status                      plugins.Count
	requestBytes, responseBytes int64
	counted                     plugins.Nanodollars
	unknownCost                 bool
	info                        plugins.ResponseInfo
}

// hostname names this node on records, "" if the system has no name. In llmapp, settle.go
// sets the values of calls of which a killed process has left no record.
var hostname, _ = os.Hostname()

// Begin counts the exchange, gives its record an id, and sets the placeholders.
// Record says whose it is, and c what must not be kept. If the store does not open,
// traffic goes on and nothing is recorded. cancel is called when the process ends and
// cannot wait for the exchange. Close must follow.
func (x *Exchange) Begin(ctx context.Context, site *Site, c *control.Controls, cancel context.CancelFunc) {
	redact.StandardLog()
	x.site, x.ctx, x.clock.started = site, ctx, time.Now()
	var err error
	if x.recorder, x.release, err = site.Open(cancel); err != nil {
		site.Logger.Error("nothing is recorded: the store does not open", zap.String("store", site.Store), zap.Error(err))
		x.recorder, x.release = discardRecorder{}, func() {}
	}
	x.Record.MaskContent(mask.Content{Site: site.mask, Key: x.Record.ContentMask().Key})
	x.Kept.Omit(&x.Record, c.OmitRequest, c.OmitResponse)
	x.Kept.Inputs(&x.Record, c.Inputs)
	x.Record.CreatedAt, x.Record.GatewayNode = storage.Millis(x.clock.started), hostname
	x.recorder.Begin(&x.Record)
	x.Record.ID, x.claimed = identify(ctx, x.recorder, x.Record.Org, c)
	setPlaceholders(ctx, &x.Record)
}

// Attempt begins the nth attempt at the call that x is, from 1. End or Supersede
// must follow. Its first Commit makes its record the call's, with the request of x.
func (x *Exchange) Attempt(n int) *Exchange {
	x.Kept.Omit(&x.Record, false, false) // what x omits, each attempt omits
	a := &Exchange{Record: x.Record, site: x.site, ctx: x.ctx, recorder: x.recorder, call: x, link: x.link, clock: clock{started: time.Now()}}
	a.Record.CreatedAt, a.Record.Attempt, a.Record.Number = storage.Millis(a.clock.started), n, 0
	return a
}

// Part begins an exchange within x, such as a response in a tunnel, at that time. It has
// a record of its own, of the same caller. End and Close must follow before those of x.
// x must not have been committed.
func (x *Exchange) Part(started time.Time) *Exchange {
	x.Kept.Omit(&x.Record, false, false) // what x omits, each part omits
	p := &Exchange{Record: x.Record, site: x.site, ctx: context.Background(), recorder: x.recorder, release: func() {}, clock: clock{started: started}}
	p.Record.ID, p.Record.CreatedAt, p.Record.Number, p.Record.Charges = uuid.Must(uuid.NewV7()), storage.Millis(p.clock.started), 0, nil
	p.recorder.Begin(&p.Record)
	return p
}

// Detach lets the exchange go on when its client's request has ended. cancel takes the
// place of that of Begin.
func (x *Exchange) Detach(cancel context.CancelFunc) {
	x.logAccess()
	x.ctx = context.Background() // the access log of the request is written
	recorder, release, err := x.site.Open(cancel)
	if err != nil { // then nothing is recorded, as Begin has logged
		return
	}
	x.release()
	x.recorder, x.release = recorder, release
}

// Join finds which call the exchange continues, once. The record knows its caller,
// and o is the outline of its request, nil if that is no conversation. previous is the
// record that the request names, the zero UUID if it names none.
func (x *Exchange) Join(o *observe.Outline, previous uuid.UUID) {
	if x.link == nil {
		x.link = x.site.join(&x.Record, o, previous)
	}
}

// Warm returns the target whose provider's cache has the beginning of the request, by the same
// hash as Target, and how many tokens it has of it. It is zero before Join.
func (x *Exchange) Warm() (target uint64, tokens int64) {
	return x.link.Warm(storage.Millis(time.Now()))
}

// MarkFirstToken notes the time of a stream's first content, once.
func (x *Exchange) MarkFirstToken() {
	if !x.Record.TimeToFirstToken.Valid && x.Info().Content {
		x.Record.TimeToFirstToken = plugins.KnownDuration(time.Since(x.clock.started))
	}
}

// Stop stops the clock of an exchange whose end is reported later, and charges what its
// answer has reported.
func (x *Exchange) Stop() {
	x.clock.stopped = time.Now()
	x.update()
	x.charge(bound.Used{Cost: x.Record.Cost, Usage: x.Record.Usage})
}

// Commit appends the record as it is known now to the journal, unless that version
// is there already. It returns when the end of the process cannot lose it any more.
// end is storage.Interrupted while more of the answer is to come: such a version is
// what a crash leaves, and no query sees it before.
func (x *Exchange) Commit(end storage.EndState) {
	r := &x.Record
	v := version{true, r.ID, end, r.Status, r.RequestBytes, r.ResponseBytes, x.costing.counted, x.costing.unknown, *x.Info()}
	if v == x.committed {
		return
	}
	if x.call != nil { // the answer is the call's, and so is the request
		x.RequestOf(x.call)
	}
	if r.EndState = end; x.silent {
		r.ErrorType = ""
	}
	x.update()
	x.setErrorMessage()
	if x.silent = end == storage.UpstreamAborted && r.ErrorType == ""; x.silent {
		if r.ErrorType = plugins.Refused(0, "").Type; !x.Info().Content {
			x.setErrorMessage() // what came may state an error in a shape of no dialect
		}
	}
	x.charge(bound.Used{Cost: r.Cost, Usage: r.Usage})
	x.Bill.Learn(x.Info().Usage.Input)
	if x.link != nil && end != storage.Interrupted { // before the client can go on from it
		used := r.Usage
		switch {
		case x.Local != nil:
			r.Usage = plugins.Usage{} // the provider's own cache has not seen the call
		case x.costing.spent != nil:
			r.Usage = x.Info().Usage // the next call goes on from the input of the last round
		}
		x.link.Answered(r, x.Account, x.Target, x.Kept.Content(r).Response)
		r.Usage = used
	}
	if x.lost {
		return
	}
	if x.call != nil && x.call.Record.Number != 0 { // the first commit of the call
		r.Number, x.call.Record.Number = x.call.Record.Number, 0
	}
	if err := x.recorder.Append(r, &x.Kept); err != nil {
		x.lost = true // the journal has counted it as lost, and must not get it again
		x.site.Logger.Error("a record is lost", zap.Stringer("id", r.ID), zap.String("store", x.site.Store), zap.Error(err))
		return
	}
	x.committed = v
}

// update fills in what the answer has told so far.
func (x *Exchange) update() {
	x.measure()
	payBySubscription(&x.Record)
}

// measure is update, with the price that the client would pay without a subscription.
func (x *Exchange) measure() {
	r, now := &x.Record, x.clock.stopped
	if now.IsZero() {
		now = time.Now()
	}
	r.UpdatedAt = storage.Millis(now)
	if r.Status.Valid {
		r.RespondedAt = r.UpdatedAt
	}
	r.Latency = plugins.KnownDuration(now.Sub(x.clock.started))
	if x.Bill != nil && r.WouldRefuse == "" { // a later round may be one that a budget would have admitted
		r.WouldRefuse = x.Bill.WouldRefuse
	}
	if x.Answer != nil {
		errorType := r.ErrorType // of a provider's error that Answer does not see
		learn(r, x.Answer.Info())
		if r.ErrorType == "" || r.ErrorType == observe.Unnamed && errorType != "" {
			r.ErrorType = errorType
		}
		r.ErrorType = errorTypeOf(r.ErrorType, r.Status.N)
		if x.Cut {
			r.Finish = budgetCut
		}
	}
	r.Model = cmp.Or(r.ModelOverride, r.ResponseModel, x.TargetModel, r.RequestModel)
	if x.Local != nil && !r.Dialect.CountsTokens() { // whose records have no usage, whoever counts
		r.Usage = plugins.Usage{Input: plugins.Known(0), Output: plugins.Known(0)}
		r.Cost = plugins.KnownCost(0)
		return
	}
	if x.link != nil && x.costing.spent == nil { // what the provider's cache missed is that of the first round
		x.link.Miss(r, x.Account)
	}
	x.price(r)
	x.costing.complete(r)
	if r.RoutingSavings = (plugins.Cost{}); x.Equals > 1 && r.CacheSavings.Valid && r.CacheSavings.N > 0 {
		n := plugins.Nanodollars(x.Equals)
		r.RoutingSavings = plugins.KnownCost(r.CacheSavings.N / n * (n - 1))
	}
}

// BrokenOff reports whether the provider did not come to the end of its answer.
func (x *Exchange) BrokenOff(end storage.EndState) bool {
	return end == storage.ClientAborted || end == storage.UpstreamAborted || x.Cut
}

// noAnswer is what is known of an answer before there is one.
var noAnswer plugins.ResponseInfo

// Info is what the answer has told so far. It must not be changed.
func (x *Exchange) Info() *plugins.ResponseInfo {
	if x.Answer == nil {
		return &noAnswer
	}
	return x.Answer.Info()
}

// End commits the final version of the record and reports it to the metrics, the
// collector and the access log. Of an attempt, it is the call's record.
func (x *Exchange) End(end storage.EndState) {
	x.Commit(end)
	x.report()
	if x.call != nil {
		x.call.Record = x.Record
	}
	x.logAccess()
}

// Supersede takes the place of End for an attempt that another one follows. The attempt
// gets a record beside the call's, which refers to the call's. Nothing of the attempt was
// committed before.
func (x *Exchange) Supersede(end storage.EndState) {
	x.Record.ID = uuid.Must(uuid.NewV7()) // fails without randomness alone
	x.Record.AttemptOf = x.call.Record.ID
	if x.link != nil && x.Record.RootID == uuid.Nil { // the tree begins with its call
		x.Record.RootID = x.call.Record.ID
	}
	x.call = nil
	x.recorder.Begin(&x.Record)
	x.Commit(end)
	x.report()
	x.recorder.Abandon(&x.Record)
}

func (x *Exchange) report() {
	x.site.App.Metrics().Observe(&x.Record)
	x.site.export(&x.Record, &x.Kept)
}

// Close releases the store after the last End. An exchange that was never
// committed is declared lost. An attempt needs no Close.
func (x *Exchange) Close() {
	x.recorder.Abandon(&x.Record)
	if x.claimed {
		x.recorder.Release(x.Record.Key())
	}
	x.release()
}

// identify returns the id that the client chose if it is free, else a new one. A claimed
// id must be released.
func identify(ctx context.Context, rec Recorder, org string, c *control.Controls) (id uuid.UUID, claimed bool) {
	if c.ID != "" {
		id, err := uuid.Parse(c.ID)
		switch {
		case err != nil || len(c.ID) != len(uuid.Nil.String()) || id == uuid.Nil || id == storage.NoCall:
			c.Warn("Service-Request-Id", "replaced, it is no UUID")
		case !rec.Claim(ctx, storage.RecordKey{Org: org, ID: id}):
			c.Warn("Service-Request-Id", "replaced, it was used before")
		default:
			return id, true
		}
	}
	return uuid.Must(uuid.NewV7()), false // fails without randomness alone
}

// RequestOf keeps what another exchange of the same client keeps of its request.
func (x *Exchange) RequestOf(other *Exchange) {
	x.Kept.RequestOf(&x.Record, &other.Kept, &other.Record)
}
