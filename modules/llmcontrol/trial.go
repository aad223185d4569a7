package llmcontrol

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// trial is what a budget would have refused.
type trial struct {
	llmapp.TrialSummary
	From  storage.Timestamp  `json:"from"`
	To    storage.Timestamp  `json:"to"`
	First *storage.Timestamp `json:"first_refused_at"`
	Items []refusedCall      `json:"refused_calls"`
}

// refusedCall is a recorded call that the budget would have refused.
type refusedCall struct {
	ID        string            `json:"request_id"`
	CreatedAt storage.Timestamp `json:"created_at"`
	User      string            `json:"user_id"`
	Value     *string           `json:"value"`
	Amount    json.RawMessage   `json:"amount"`
	Counted   json.RawMessage   `json:"counted"`
	Unpriced  bool              `json:"unpriced"`
}

// maxTried is how many refused calls an answer has at most.
const maxTried = 10_000

// tryBudget returns what a budget would have refused of recorded calls. It makes no budget.
func tryBudget(c *call) (any, error) {
	body := struct {
		Budget json.RawMessage `json:"budget"`
		From   *time.Time      `json:"from"`
		To     *time.Time      `json:"to"`
		Limit  *int            `json:"limit"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	limit := defaultPage
	switch {
	case body.Budget == nil:
		return nil, bad("budget: the settings of a budget are expected")
	case body.From == nil:
		return nil, bad("from: the time is expected from which recorded calls count")
	case body.Limit != nil && (*body.Limit < 0 || *body.Limit > maxTried):
		return nil, bad("limit: a number from 0 to %d is expected", maxTried)
	case body.Limit != nil:
		limit = *body.Limit
	}
	from, to := storage.Millis(*body.From), storage.Millis(time.Now())
	if body.To != nil {
		to = storage.Millis(*body.To)
	}
	if from >= to {
		return nil, bad("to: a time after from is expected")
	}
	b, err := c.app.Money().Parse(c.org.Name, body.Budget)
	if err != nil {
		return nil, bad("%v", err)
	}
	over, ok := c.app.Turns().Trials.Take(c.ctx, c.key.Hash())
	if !ok {
		return nil, &plugins.Error{Status: http.StatusTooManyRequests, RetryAfter: 5 * time.Second, Message: "too many trials of this API key, or in all, are under way; ask again when one has ended"}
	}
	defer over()
	answer := trial{From: from, To: to, Items: []refusedCall{}}
	tried, err := c.app.Money().Try(c.ctx, b, from, to, func(r *llmapp.Refusal) {
		if answer.First == nil {
			answer.First = &r.CreatedAt
		}
		if len(answer.Items) == limit {
			return
		}
		item := refusedCall{
			ID: r.ID.String(), CreatedAt: r.CreatedAt, User: r.User, Amount: b.Amount(r.Amount), Counted: b.Amount(r.Counted), Unpriced: r.Unpriced,
		}
		if b.Per != "" {
			item.Value = &r.Value
		}
		answer.Items = append(answer.Items, item)
	})
	if err != nil {
		return nil, err
	}
	answer.TrialSummary = tried.Summary()
	return answer, nil
}
