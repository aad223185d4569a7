package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// OpenRouter reads the activity of an account, which has the last 30 complete days, and its credits.
// https://openrouter.ai/docs/api/api-reference/analytics/get-user-activity
// https://openrouter.ai/docs/api/api-reference/credits/get-credits
func (a API) OpenRouter(ctx context.Context, window Window) (*Bill, error) {
	if a.URL == "" {
		a.URL = "https://openrouter.ai"
	}
	read := &reading{API: a}
	header := http.Header{"Authorization": {"Bearer " + a.Key}}
	answer, err := read.get(ctx, "/api/v1/activity", nil, header)
	if err != nil {
		return nil, err
	}
	b := &Bill{
		Providers: []string{"openrouter"}, States: [kinds]bool{Input: true, Output: true}, CountsRequests: true, WithoutTiers: true,
		generations: &generations{read: read, header: header, window: window},
	}
	credits, err := read.get(ctx, "/api/v1/credits", nil, header)
	if err != nil {
		return nil, err
	}
	used, err := ParseAmount(credits.Get("data.total_usage").Raw, 0)
	if err != nil {
		return nil, fmt.Errorf("credits: total_usage: %w", err)
	}
	b.Incomparable = append(b.Incomparable, Item{
		Description: fmt.Sprintf("credits that the account has used since its beginning, of $%s bought", credits.Get("data.total_credits").Raw),
		Amount:      plugins.KnownCost(used.Nanodollars),
	})
	padded := window.Padded()
	return b, read.lines(answer.Get("data"), func(item gjson.Result) error {
		date, _, _ := strings.Cut(item.Get("date").Str, " ") // some dates have a time
		day, err := ParseDay(date)
		if err != nil || !padded.contains(day) {
			return err
		}
		if err := b.addActivity(day, item); err != nil {
			return fmt.Errorf("%s: %w", day, err)
		}
		return nil
	})
}

func (b *Bill) addActivity(day Day, item gjson.Result) error {
	n, err := counts(item, "prompt_tokens", "completion_tokens", "requests")
	if err != nil {
		return err
	}
	amount, err := ParseAmount(item.Get("usage").Raw, 0)
	if err != nil {
		return err
	}
	model := item.Get("model").Str
	b.Usage = append(b.Usage, Usage{Day: day, Model: model, Requests: n[2], Tokens: Tokens{Input: n[0], Output: n[1]}})
	b.Costs = append(b.Costs, Cost{Day: day, Model: model, Amount: amount})
	if own := item.Get("byok_usage_inference"); own.Num > 0 {
		amount, err := ParseAmount(own.Raw, 0)
		if err != nil {
			return err
		}
		b.Incomparable = append(b.Incomparable, Item{&day, model + ": billed by another provider for your own key", plugins.KnownCost(amount.Nanodollars)})
	}
	return nil
}

// The bounds of asking for single calls: how many, and the pause between two.
const (
	maxGenerations  = 500
	generationPause = 50 * time.Millisecond
)

// generations are what OpenRouter states of single calls, by the ids of their responses. Its activity adds
// up all calls; what was billed for one whose answer broke off, or states no usage, is known here alone.
// https://openrouter.ai/docs/api/api-reference/generations/get-generation
type generations struct {
	read   *reading
	header http.Header
	window Window
	calls  []unstatedCall
	// unasked counts the calls beyond maxGenerations, and those for which there is no answer.
	unasked int64
}

// unstatedCall is a call whose record has no usage.
type unstatedCall struct {
	responseID, account string
	totals              *Totals // that have the call
}

// add notes a call that may be billed and has no usage. A bill without generations notes nothing.
func (g *generations) add(c *Call, totals *Totals) {
	switch {
	case g == nil || c.ResponseID == "" || !g.window.contains(DayOf(c.Start)):
	case len(g.calls) == maxGenerations:
		g.unasked++
	default:
		g.calls = append(g.calls, unstatedCall{c.ResponseID, c.Account, totals})
	}
}

// readGenerations adds what the provider states of the calls that were noted to their totals. An answer that
// fails does not fail the comparison. Calls that stay unknown are listed.
func (b *Bill) readGenerations(ctx context.Context, sums *volume) error {
	g := b.generations
	if g == nil {
		return nil
	}
	var notFound []unstatedCall
	seen := make(map[string]bool) // the accounts whose generations the key can see
	for i, call := range g.calls {
		answer, err := g.read.get(ctx, "/api/v1/generation", url.Values{"id": {call.responseID}}, g.header)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		refused, ok := errors.AsType[*refusedError](err)
		if err != nil && !ok || ok && slices.Contains(refusesAll, refused.status) {
			g.unasked += int64(len(g.calls) - i)
			break
		}
		switch {
		case ok && refused.status == http.StatusNotFound:
			notFound = append(notFound, call)
		case ok || call.totals.addGeneration(answer.Get("data"), sums) != nil:
			g.unasked++
		default:
			seen[call.account] = true
		}
		select {
		case <-time.After(generationPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	unseen := 0
	for _, call := range notFound {
		if seen[call.account] {
			call.totals.Asked++ // billed nothing
		} else {
			unseen++
		}
	}
	if unseen > 0 {
		b.Incomparable = append(b.Incomparable, Item{Description: fmt.Sprintf(
			"calls without a usage that OpenRouter does not find: it billed nothing for them, or the key cannot see the calls of other keys: %d", unseen)})
	}
	if g.unasked > 0 {
		b.Incomparable = append(b.Incomparable, Item{Description: fmt.Sprintf(
			"calls without a usage for which OpenRouter has no answer, because the key may not read them, it failed, or they are more than %d: %d", maxGenerations, g.unasked)})
	}
	return nil
}

// refusesAll are the statuses after which OpenRouter is not asked for more calls.
var refusesAll = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}

func (t *Totals) addGeneration(data gjson.Result, sums *volume) error {
	n, err := counts(data, "native_tokens_prompt", "native_tokens_completion")
	if err != nil {
		return err
	}
	amount, err := ParseAmount(data.Get("total_cost").Raw, 0)
	if err != nil {
		return err
	}
	sums.addCounts(n...)
	sums.addAmounts(amount.Nanodollars)
	t.Asked++
	t.Stated = t.Stated.plus(count{1, Tokens{Input: n[0], Output: n[1]}})
	t.StatedCost += amount.Nanodollars
	return nil
}
