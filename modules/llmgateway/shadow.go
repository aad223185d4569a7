package llmgateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/storage"
)

// maxShadows bounds the shadows under way in the process. Calls that come meanwhile have none.
const maxShadows = 16

// maxShadowTime bounds how long a shadow takes: no client waits for it, and would leave.
const maxShadowTime = 10 * time.Minute

var shadowTurns = make(chan struct{}, maxShadows)

// shadowOf is the property that names the call which a shadow repeats.
const shadowOf = "Shadow-Of"

// beginShadows makes the answered call again at models of its alias, behind its client's back: no
// client waits, no user pays, and no budget counts it. It returns false if there is nothing to make,
// else it closes the call when it is done.
func (c *call) beginShadows(alias *routing.Alias) bool {
	if alias == nil || len(alias.Shadows) == 0 || !c.repeatable() {
		return false
	}
	var models []string
	for _, s := range alias.Shadows {
		if rand.Float64() < s.Share {
			models = append(models, s.Model)
		}
	}
	if models == nil {
		return false
	}
	select {
	case shadowTurns <- struct{}{}:
	default:
		return false
	}
	go func() {
		defer func() { <-shadowTurns }()
		defer c.close()
		for _, model := range models {
			c.shadow(model)
		}
	}()
	return true
}

// repeatable reports whether the call can be made twice: it changes nothing at a provider, and
// refers to nothing that one provider keeps.
func (c *call) repeatable() bool {
	if c.input.api.Parse == nil || c.dialect.CountsTokens() || c.input.form != nil || c.stored.Field != "" || len(c.stored.IDs) > 0 || c.continuation.state.ConversationID != "" || c.input.compaction != nil || c.mcp != nil {
		return false
	}
	return !bound.Of(c.dialect, c.input.object(c.input.sent), nil).Hosted
}

// shadow makes the call at a model, and records it. The operator pays: an account of the organisation's
// own makes no shadows.
func (c *call) shadow(model string) {
	ctx, cancel := context.WithTimeout(context.Background(), maxShadowTime)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			c.h.site.Logger.Error("a shadow panicked", zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
		}
	}()
	targets, _, err := c.h.site.App.Resolver(c.exchange.Record.Org).Resolve(model)
	paid := slices.IndexFunc(targets, func(t routing.Target) bool { return t.Account.Platform })
	if err != nil || paid < 0 { // the organisation cannot call it
		return
	}
	s := *c
	s.ctx, s.r, s.w = ctx, c.r.WithContext(ctx), discardWriter{}
	s.shadows, s.controls, s.limit, s.variants, s.cache = true, new(control.Controls), nil, nil, cacheLookup{}
	s.exchange = newShadowExchange(&c.exchange.Record)
	s.exchange.Begin(ctx, c.h.site, s.controls, cancel)
	s.exchange.Record.Arm = routing.ShadowArm
	s.exchange.Record.Properties = map[string]string{shadowOf: c.exchange.Record.ID.String()}
	defer s.exchange.Close()
	k := &s.exchange.Kept
	k.Request(&s.exchange.Record, storage.Body{Type: c.r.Header.Get("Content-Type"), Data: s.input.sent}, int64(c.h.MaxBody), false)
	a, err := s.prepare(targets[paid], 1, false)
	if err != nil {
		s.refuse(err)
		return
	}
	a.x.Record.Arm = routing.ShadowArm
	if outcome, _ := a.send(c.h.policy.FirstByte(false, true)); outcome != routing.Answered {
		a.answerFailure()
	}
}

// newShadowExchange returns an exchange of the organisation of a call, and of none of its users, keys
// and sessions.
func newShadowExchange(r *storage.Record) *recording.Exchange {
	x := new(recording.Exchange)
	x.Record = storage.Record{
		Org: r.Org, Dialect: r.Dialect, Path: r.Path, Referrer: "gateway", RequestModel: r.RequestModel, RequestBytes: r.RequestBytes,
		RequestOmitted: r.RequestOmitted, ResponseOmitted: r.ResponseOmitted,
	}
	x.Record.MaskContent(r.ContentMask())
	return x
}

// discardWriter takes the place of the client: a shadow call has none.
type discardWriter struct{}

func (discardWriter) Header() http.Header         { return make(http.Header) }
func (discardWriter) Write(p []byte) (int, error) { return len(p), nil }
func (discardWriter) WriteHeader(int)             {}
