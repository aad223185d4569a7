package llmgateway

import (
	"errors"
	"net/http"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
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

// lanes yields the lanes that the attempt can take, the best one first.
func (a *attempt) lanes(yield func(lane) bool) {
	c := a.call
	switch {
	case c.dialect == plugins.Realtime:
		yield(&webSocket{endpoint{native{a}}})
	case c.route.native:
		_ = yield(&translatedEndpoint{endpoint: endpoint{native{a}}}) && yield(&endpoint{native{a}})
	case c.input.compaction != nil && !a.speaks(plugins.Compaction):
		yield(&summary{translation{a: a}})
	case c.input.compaction != nil:
		_ = yield(&native{a}) && yield(&summary{translation{a: a}})
	case c.dialect.CountsTokens():
		_ = yield(&native{a}) && yield(&tokenCount{translation{a: a}})
	case c.input.api.Parse == nil:
		yield(&native{a})
	default:
		_ = yield(&native{a}) && yield(&conversation{translation: translation{a: a}})
	}
}

// takeLane makes the request to the provider in the first lane that the provider has.
func (a *attempt) takeLane() (err error) {
	if a.to, err = a.providerTarget(); err != nil {
		return err
	}
	for a.lane = range a.lanes {
		a.client = client{call: a.call, x: a.x, w: a.call.w}
		if a.req, err = a.lane.Request(); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return noEndpoint(a.target)
}
