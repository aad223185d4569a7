package llmgateway

import (
	"errors"
	"net/http"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// lane is how an attempt speaks with its provider.
type lane interface {
	// Request returns the request to the provider, or errors.ErrUnsupported if the provider
	// lacks the lane.
	Request() (*http.Request, error)
	// Answer answers the client, or returns why it did not and what may follow.
	Answer(resp *http.Response) (routing.Outcome, *plugins.Error)
}

// bounder is a lane that changes what bounds the cost of a call.
type bounder interface {
	Bound(of *bound.Call)
}

// lanes returns the lanes that the attempt can take, the best one first.
func (a *attempt) lanes() []lane {
	c := a.call
	switch {
	case c.dialect == plugins.Realtime:
		return []lane{&webSocket{endpoint{native{a}}}}
	case c.route.native:
		return []lane{&translatedEndpoint{endpoint: endpoint{native{a}}}, &endpoint{native{a}}}
	case c.compaction != nil && !c.speaks(a.target, plugins.Compaction):
		return []lane{&summary{translation{a: a}}}
	case c.compaction != nil:
		return []lane{&native{a}, &summary{translation{a: a}}}
	case c.dialect.CountsTokens():
		return []lane{&native{a}, &tokenCount{translation{a: a}}}
	case c.api.Parse == nil:
		return []lane{&native{a}}
	}
	return []lane{&native{a}, &conversation{translation: translation{a: a}}}
}

// takeLane makes the request to the provider in the first lane that the provider has.
func (a *attempt) takeLane() (err error) {
	for _, a.lane = range a.lanes() {
		a.warnings, a.client = nil, client{w: a.call.w}
		if a.req, err = a.lane.Request(); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return noEndpoint(a.target)
}

// translateTarget is the target as its provider's plugin takes it.
func (a *attempt) translateTarget() translate.Target {
	return a.target.Account.Target(a.target.Model, a.target.Listed)
}
