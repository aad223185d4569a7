package llmgateway

import (
	"errors"
	"net/http"

	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// candidate is a call at one of its targets, whether or not it is sent there.
type candidate struct {
	call   *call
	target routing.Target
}

func (c *call) at(t routing.Target) candidate { return candidate{c, t} }

// atAccount returns the call at an account, without a model.
func (c *call) atAccount(account *providers.Account) candidate {
	return candidate{c, routing.Target{Deployment: account.Deployment("", nil)}}
}

// spending is what the bounds of the call at the target depend on.
func (at candidate) spending() money.Spending {
	c, r := at.call, &at.call.exchange.Record
	return money.Spending{Org: r.Org, Key: c.key, Account: at.target.Account, Model: at.target.Name, Record: r, Limit: c.limit, Shadow: c.shadows}
}

// bounded reports whether credits or budgets bound what the call costs at the target.
func (at candidate) bounded() bool {
	return !at.call.shadows && at.call.h.site.App.Money().Bounds(at.spending())
}

// shares reports whether others than the organisation use the account.
func (at candidate) shares() bool {
	return at.call.h.site.App.Money().Shares(at.call.exchange.Record.Org, at.target.Account)
}

// providerTarget returns the target as its provider's plugin takes it.
func (at candidate) providerTarget() (translate.Target, error) {
	return at.target.Account.Target(at.target.Model, at.target.Listed, at.call.key)
}

// noFields is the least that a request can be.
var noFields, _ = plugins.ParseObject([]byte("{}"))

// speaks reports whether the target speaks a dialect itself.
func (at candidate) speaks(d plugins.Dialect) bool {
	native, ok := at.target.Account.API.(translate.Native)
	if !ok {
		return false
	}
	to, err := at.providerTarget()
	if err == nil {
		_, err = native.PrepareNative(at.call.ctx, d, noFields, to)
	}
	return !errors.Is(err, errors.ErrUnsupported)
}

// endpoint returns the request to a path of the target, which may lack it.
func (at candidate) endpoint(path string) (*http.Request, error) {
	if has, ok := at.target.Account.API.(translate.Endpoints); ok {
		to, err := at.providerTarget()
		if err != nil {
			return nil, err
		}
		req, err := has.PrepareEndpoint(at.call.ctx, at.call.r.Method, path, to)
		if !errors.Is(err, errors.ErrUnsupported) {
			return req, err
		}
	}
	return nil, noEndpoint(at.target)
}

// passHeaders gives the provider what the client's headers say of the account.
func (at candidate) passHeaders(to http.Header) (warnings []string) {
	return at.target.Account.PassHeaders(at.call.exchange.Record.Org, at.shares(), at.call.r.Header, to)
}

// allow refuses what an organisation must not ask of an account: models that the key may not
// call; if the call is bounded, fields beside the documented schema and answers that cannot be
// charged; and if others use the account, what it keeps for them.
func (at candidate) allow() error {
	c := at.call
	if err := c.key.CheckModels(c.input.boundRequest(), at.target.Account.Label); err != nil {
		return err
	}
	if at.bounded() {
		if c.dialect.OfResponses() {
			if err := translate.Validate(c.input.body); err != nil {
				return err
			}
		}
		if err := c.input.boundRequest().Check(); err != nil {
			return err
		}
	}
	return at.allowStored(len(c.stored.IDs) > 0 && (c.route.native || at.speaks(c.dialect)))
}

// allowStored refuses what an account that others use may keep for them. native: the account gets the
// request as it is.
func (at candidate) allowStored(native bool) error {
	c := at.call
	if len(c.stored.IDs) == 0 || !at.shares() {
		return nil
	}
	if !native && c.stored.Field != "" {
		return nil // nothing is sent: the translation has no place for it
	}
	given := at.idChecker()
	for _, named := range c.stored.IDs {
		if (native || !named.Native) && !named.Reasoning && !given(named) {
			return named.NotYours(at.target.Account.Label, c.stored.Hint)
		}
	}
	return nil
}

// idChecker returns a function that reports whether the account gave an id to the organisation. The
// memory tells, or a record, because the memory may have been lost.
func (at candidate) idChecker() func(bound.StateID) bool {
	c := at.call
	var ids []string
	for _, named := range c.stored.IDs {
		ids = append(ids, named.ID)
	}
	given := c.memoryOfOrg().get(c.ctx, ids)
	return func(named bound.StateID) bool {
		return given[named.ID] != "" || named.Answer && c.exchange.Earlier().Answered(named.ID, at.target.Account.BaseURL)
	}
}
