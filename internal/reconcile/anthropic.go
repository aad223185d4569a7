package reconcile

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// Anthropic reads the usage report and the cost report of an organisation.
// https://platform.claude.com/docs/en/build-with-claude/usage-cost-api
func (a API) Anthropic(ctx context.Context, window Window) (*Bill, error) {
	if a.URL == "" {
		a.URL = "https://api.anthropic.com"
	}
	b := &Bill{
		Providers: []string{"anthropic"}, States: [kinds]bool{Input: true, CacheRead: true, CacheWrite: true, CacheWrite1h: true, Output: true},
		SearchesApart: true,
		WithoutCost:   map[string]bool{"priority": true}, // paid in advance: the cost report lacks it
	}
	read, padded := &reading{API: a}, window.Padded()
	header := http.Header{"X-Api-Key": {a.Key}, "Anthropic-Version": {"2023-06-01"}}
	query := func(groupBy ...string) url.Values {
		return url.Values{
			"starting_at": {padded.From.Time().Format(time.RFC3339)}, "ending_at": {padded.To.Time().Format(time.RFC3339)},
			"bucket_width": {"1d"}, "limit": {"31"}, "group_by[]": groupBy,
		}
	}
	day := func(bucket gjson.Result) (Day, error) {
		start, err := time.Parse(time.RFC3339, bucket.Get("starting_at").Str)
		if err != nil {
			return 0, fmt.Errorf("starting_at: %w", err)
		}
		return DayOf(start), nil
	}
	err := read.buckets(ctx, "/v1/organizations/usage_report/messages", query("model", "service_tier", "api_key_id", "workspace_id"), header, day, b.addAnthropicUsage)
	if err != nil {
		return nil, err
	}
	return b, read.buckets(ctx, "/v1/organizations/cost_report", query("workspace_id", "description"), header, day, b.addAnthropicCost)
}

func (b *Bill) addAnthropicUsage(day Day, result gjson.Result) error {
	n, err := counts(result, "uncached_input_tokens", "cache_read_input_tokens", "cache_creation.ephemeral_5m_input_tokens",
		"cache_creation.ephemeral_1h_input_tokens", "output_tokens")
	if err != nil {
		return err
	}
	b.Usage = append(b.Usage, Usage{
		Day: day, Model: result.Get("model").Str, Tier: result.Get("service_tier").Str,
		Key: result.Get("api_key_id").Str, Project: result.Get("workspace_id").Str, Tokens: Tokens(n),
	})
	return nil
}

func (b *Bill) addAnthropicCost(day Day, result gjson.Result) error {
	if err := dollars(result.Get("currency").Str); err != nil {
		return err
	}
	n, err := ParseAmount(result.Get("amount").String(), 2) // cents
	if err != nil {
		return err
	}
	description, model := result.Get("description").Str, result.Get("model").Str
	switch {
	case description == "" && model == "" && result.Get("cost_type").Str == "":
		b.CostsByDay = true
		b.Costs = append(b.Costs, Cost{Day: day, Amount: n})
	case result.Get("cost_type").Str == "web_search":
		b.Costs = append(b.Costs, Cost{Day: day, Amount: n, Search: true})
	case model != "" && n.Nanodollars >= 0:
		b.Costs = append(b.Costs, Cost{Day: day, Model: model, Amount: n})
	case n.Nanodollars != 0:
		b.Incomparable = append(b.Incomparable, Item{&day, description, plugins.KnownCost(n.Nanodollars)})
	}
	return nil
}
