package reconcile

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// OpenRouter reads the activity of an account, which has the last 30 complete days.
// https://openrouter.ai/docs/api-reference/analytics/get-activity
func (a API) OpenRouter(ctx context.Context, window Window) (*Bill, error) {
	if a.URL == "" {
		a.URL = "https://openrouter.ai"
	}
	read := &reading{API: a}
	answer, err := read.get(ctx, "/api/v1/activity", nil, http.Header{"Authorization": {"Bearer " + a.Key}})
	if err != nil {
		return nil, err
	}
	b := &Bill{Providers: []string{"openrouter"}, States: [kinds]bool{Input: true, Output: true}, CountsRequests: true, WithoutTiers: true}
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
