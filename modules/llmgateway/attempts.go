package llmgateway

import (
	"time"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/shared"
)

// tryTargets makes attempts until one has answered the client, or no other may
// follow. Each target is tried again as the policy allows, and then the next one. It returns the
// alias of the target that answered, nil if none did, or if it has no alias.
func (c *call) tryTargets(targets []routing.Target) *routing.Alias {
	places := c.cache.places
	if places == nil {
		var err error
		if places, err = c.choose(targets); err != nil {
			c.refuse(err)
			return nil
		}
	}
	deadline := time.Now().Add(c.h.policy.TryDuration)
	tried := attempts{call: c}
	var outcome routing.Outcome
	for i, tries := 0, 1; i < len(places); {
		outcome = tried.add(places[i:])
		if outcome == routing.Answered {
			if len(places) > 1 {
				c.affinity().tell(places[i].Target, tried.last.x.Record.Usage.Input)
			}
			return places[i].Target.Alias
		}
		if outcome == routing.Again {
			continue
		}
		if outcome == routing.Abort {
			// A larger model may take it, also one that has failed before: its failure passes.
			if larger := places[i].Larger(places); tried.failure.Code == plugins.ContextExceeded && len(larger) > 0 {
				places, i, tries = larger, 0, 1
				continue
			}
			break
		}
		atOnce := waits(tried.failure) && i < len(places)-1 && places[i+1].CanReplace(&places[i])
		if pause, ok := c.h.policy.Pause(tries, tried.failure.RetryAfter, deadline); ok && outcome == routing.Retry && !atOnce {
			tries++
			if !routing.Sleep(c.ctx, pause) {
				break
			}
			continue
		}
		if i, tries = i+1, 1; time.Now().After(deadline) {
			break
		}
	}
	if len(tried.failures) == 1 && outcome == routing.Abort {
		tried.failures = nil // there was no choice to tell of
	}
	tried.answerFailure(places[0].Target)
	return nil
}

// attempts are the attempts of a call.
type attempts struct {
	call     *call
	last     *attempt           // the latest one that was sent: its failure is the answer unless another follows
	failure  *plugins.Error     // of the latest one, nil if it answered
	failures []apierror.Attempt // of all
	// refusesReasoning has the circuits of targets that refused the reasoning of earlier turns.
	refusesReasoning map[shared.Key]bool
}

// add makes an attempt at the first of the places that remain, and returns its outcome.
func (t *attempts) add(places []routing.Place) (outcome routing.Outcome) {
	target := places[0].Target
	a, err := t.call.prepare(target, len(t.failures)+1, t.refusesReasoning[target.Circuit])
	if err == nil {
		outcome = t.send(a, places)
	} else { // nothing was sent: another target may take what this one does not
		outcome, t.failure = routing.Failover, apierror.Of(err)
	}
	if outcome != routing.Answered {
		t.failures = append(t.failures, apierror.Attempt{Target: target.Name, Status: t.failure.Status, Message: t.failure.Message})
	}
	return outcome
}

// send sends the attempt at the first of the places that remain.
func (t *attempts) send(a *attempt, places []routing.Place) (outcome routing.Outcome) {
	c, circuit := t.call, places[0].Target.Circuit
	t.supersede()
	t.last = a
	if places[0].State == routing.Warm {
		a.x.Equals = routing.Equals(places)
	}
	outcome, t.failure = a.sendCounted(c.h.policy.FirstByte(c.input.streams(), len(places) == 1))
	a.observe(outcome, t.failure)
	if outcome == routing.Again && t.failure.RefusesReasoning() {
		if t.refusesReasoning == nil {
			t.refusesReasoning = make(map[shared.Key]bool)
		}
		t.refusesReasoning[circuit] = true
	}
	if outcome == routing.Answered {
		c.h.breakers().Succeeded(circuit)
		return outcome
	}
	if c.ctx.Err() == nil && a.isFirst() {
		c.cache.lead.Withhold()
	}
	if outcome == routing.Retry || t.failure.Status >= 500 {
		c.h.breakers().Failed(circuit)
	}
	return outcome
}

// supersede ends the record of the latest attempt, because something else answers the client.
func (t *attempts) supersede() {
	if t.last != nil {
		t.last.x.Supersede(t.last.end)
	}
}

// answerFailure answers the client after no attempt has: with an estimate if the tokens of a request for
// the target first cannot be counted, else with the failure.
func (t *attempts) answerFailure(first routing.Target) {
	c := t.call
	switch {
	case c.dialect.CountsTokens() && t.failure.Code == unsupportedEndpoint && !c.controls.Strict:
		t.supersede()
		c.at(first).answerEstimate()
	case t.last == nil:
		c.refuse(t.failure)
	default:
		t.last.answerFailure()
		c.writeError(apierror.To(c.r, c.dialect, t.last.failure), t.failures...)
	}
}

// answerFailure makes the record of a failed attempt the record of the call.
func (a *attempt) answerFailure() {
	if a.call.ctx.Err() != nil { // between two attempts, perhaps
		a.end = storage.ClientAborted
	}
	a.x.Commit(a.end)
	a.x.End(a.end)
}
