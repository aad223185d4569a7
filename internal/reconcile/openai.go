package reconcile

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// OpenAI reads the usage and the costs of an organisation.
// https://platform.openai.com/docs/api-reference/usage
func (a API) OpenAI(ctx context.Context, window Window) (*Bill, error) {
	if a.URL == "" {
		a.URL = "https://api.openai.com"
	}
	o := openAI{&reading{API: a}, window.Padded(), &Bill{
		Providers: []string{"openai"}, States: [kinds]bool{Input: true, CacheRead: true, CacheWrite: true, Output: true},
		CountsRequests: true, SearchesApart: true, WithoutTokens: make(map[string]bool),
	}}
	for _, endpoint := range []string{"completions", "decisions"} {
		if err := o.readUsage(ctx, endpoint, "batch", "service_tier"); err != nil {
			return nil, err
		}
	}
	if err := o.readUsage(ctx, "embeddings"); err != nil {
		return nil, err
	}
	// What these count is not tokens: their costs alone can be compared.
	for _, endpoint := range []string{"images", "audio_speeches", "audio_transcriptions"} {
		err := o.read(ctx, "/v1/organization/usage/"+endpoint, []string{"model"}, func(_ Day, result gjson.Result) error {
			o.bill.WithoutTokens[result.Get("model").Str] = true
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return o.bill, o.read(ctx, "/v1/organization/costs", []string{"line_item", "project_id"}, o.addCost)
}

type openAI struct {
	*reading
	window Window
	bill   *Bill
}

func (o *openAI) read(ctx context.Context, path string, groupBy []string, each func(Day, gjson.Result) error) error {
	query := url.Values{
		"start_time": {strconv.FormatInt(o.window.From.Time().Unix(), 10)}, "end_time": {strconv.FormatInt(o.window.To.Time().Unix(), 10)},
		"bucket_width": {"1d"}, "limit": {"31"}, "group_by": groupBy,
	}
	day := func(bucket gjson.Result) (Day, error) {
		start := bucket.Get("start_time")
		if start.Type != gjson.Number {
			return 0, fmt.Errorf("a bucket has no start_time")
		}
		return DayOf(time.Unix(start.Int(), 0)), nil
	}
	return o.buckets(ctx, path, query, http.Header{"Authorization": {"Bearer " + o.Key}}, day, each)
}

func (o *openAI) readUsage(ctx context.Context, endpoint string, groupBy ...string) error {
	return o.read(ctx, "/v1/organization/usage/"+endpoint, append(groupBy, "model", "project_id", "api_key_id"), func(day Day, result gjson.Result) error {
		n, err := counts(result, "input_tokens", "input_cached_tokens", "output_tokens", "num_model_requests",
			"input_uncached_tokens", "input_cache_write_tokens", "input_cache_write_12h_tokens")
		if err != nil {
			return err
		}
		// input_tokens has all of the input. input_cache_write_tokens has all writes beside
		// input_cache_write_30m_tokens, and without it only those for 30 minutes: so version 3.57.0 of OpenAI's
		// library for Python and the reference before it say.
		input := n[4]
		if result.Get("input_uncached_tokens").Type == gjson.Null {
			if input = n[0] - n[1] - n[5]; result.Get("input_cache_write_30m_tokens").Type == gjson.Null {
				input -= n[6]
			}
		}
		tier := result.Get("service_tier").Str
		if result.Get("batch").Bool() {
			tier = plugins.BatchTier
		}
		o.bill.Usage = append(o.bill.Usage, Usage{
			Day: day, Model: result.Get("model").Str, Tier: tier, Key: result.Get("api_key_id").Str, Project: result.Get("project_id").Str,
			Requests: n[3], Tokens: Tokens{Input: input, CacheRead: n[1], CacheWrite: n[0] - n[1] - input, Output: n[2]},
		})
		return nil
	})
}

func (o *openAI) addCost(day Day, result gjson.Result) error {
	amount := result.Get("amount.value")
	if amount.Type == gjson.Null { // a day without costs
		return nil
	}
	if err := dollars(result.Get("amount.currency").Str); err != nil {
		return err
	}
	n, err := ParseAmount(amount.String(), 0)
	if amount.Type == gjson.Number {
		n, err = ParseAmount(amount.Raw, 0)
	}
	if err != nil {
		return err
	}
	// A line item is a model and what was used of it, as in "gpt-4o-2024-08-06, cached input".
	item := result.Get("line_item").Str
	name, _, ofModel := strings.Cut(item, ", ")
	model, _, _ := strings.Cut(name, " ")
	switch {
	case item == "":
		o.bill.CostsByDay = true
		o.bill.Costs = append(o.bill.Costs, Cost{Day: day, Amount: n})
	case strings.HasPrefix(item, "web search"):
		o.bill.Costs = append(o.bill.Costs, Cost{Day: day, Amount: n, Search: true})
	case ofModel && n.Nanodollars >= 0:
		o.bill.Costs = append(o.bill.Costs, Cost{Day: day, Model: model, Amount: n})
	case n.Nanodollars != 0:
		o.bill.Incomparable = append(o.bill.Incomparable, Item{&day, item, plugins.KnownCost(n.Nanodollars)})
	}
	return nil
}
