package reconcile

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/plugins"
)

// billed adds up the calls of a bill as files and activities have them: by day, model and tier.
func (v *vendor) billed() (lines []Usage, costs []plugins.Nanodollars) {
	type key struct {
		day         Day
		model, tier string
	}
	at := make(map[key]int)
	for _, c := range v.calls {
		k := key{v.day(&c), c.Model, c.Tier}
		i, ok := at[k]
		if !ok {
			i = len(lines)
			at[k] = i
			lines, costs = append(lines, Usage{Day: k.day, Model: k.model, Tier: k.tier}), append(costs, 0)
		}
		lines[i].Requests++
		lines[i].Tokens = lines[i].Tokens.plus(tokensOf(c.Usage, [kinds]bool{true, true, true, true, true}))
		costs[i] += c.Cost.N
	}
	return lines, costs
}

func (v *vendor) amount(n plugins.Nanodollars) string {
	return strconv.FormatFloat(n.Dollars()*v.rate, 'f', v.decimals, 64)
}

// openRouter plays OpenRouter, which states what single calls cost by the ids of their responses.
func (v *vendor) openRouter(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/v1/activity":
		v.activity(w)
	case "/api/v1/credits":
		_, _ = io.WriteString(w, `{"data":{"total_credits":100.5,"total_usage":25.75}}`)
	case "/api/v1/generation":
		i := slices.IndexFunc(v.calls, func(c billedCall) bool { return c.ResponseID == r.URL.Query().Get("id") })
		if v.hides != 0 {
			w.WriteHeader(v.hides)
		} else if i < 0 {
			w.WriteHeader(http.StatusNotFound)
		} else {
			c := v.calls[i]
			fmt.Fprintf(w, `{"data":{"native_tokens_prompt":%d,"native_tokens_completion":%d,"total_cost":%s}}`, c.Usage.Input.N, c.Usage.Output.N, v.amount(c.Cost.N))
		}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// activity answers as OpenRouter, which has no service tiers.
func (v *vendor) activity(w io.Writer) {
	lines, costs := v.billed()
	var data []any
	for i, u := range lines {
		data = append(data, map[string]any{
			"date": u.Day.String() + " 00:00:00", "model": u.Model, "usage": json.Number(v.amount(costs[i])), "requests": u.Requests,
			"prompt_tokens": u.Tokens.Total() - u.Tokens[Output], "completion_tokens": u.Tokens[Output],
		})
	}
	json.NewEncoder(w).Encode(map[string]any{"data": data})
}

// exports write the bills of clouds, whose models have names of their own.
var exports = map[string]struct {
	provider string
	write    func(*vendor) string
}{"bedrock": {"aws", (*vendor).cur}, "vertex": {"google", (*vendor).cloudBilling}}

func (v *vendor) cur() string {
	names := map[string]string{"amazon.nova-lite-v1:0": "NovaLite", "anthropic.claude-sonnet-4-5-20250929-v1:0": "Claude4.5Sonnet"}
	kindNames := [kinds]string{"input-tokens", "cache-read-input-token-count", "cache-write-input-token-count", "cache-write-1h-input-token-count", "output-tokens"}
	text := strings.SplitAfter(cur, "\n")[0]
	lines, costs := v.billed()
	for i, u := range lines {
		for k, n := range u.Tokens {
			usage, amount := "USE1-"+names[u.Model]+"-"+kindNames[k], "0.0000000000"
			if u.Tier == plugins.BatchTier {
				usage += "-batch"
			}
			if Kind(k) == Output {
				amount = v.amount(costs[i])
			}
			text += fmt.Sprintf("%sT05:00:00.000Z,Usage,AmazonBedrock,%s,%.3f,%s,USD,,1K tokens,{}\n", u.Day, usage, float64(n)/1000, amount)
		}
	}
	return text
}

func (v *vendor) cloudBilling() (text string) { return v.cloudBillingIn("USD", 1) }

// cloudBillingIn is Google's export in a currency of which a dollar is rate.
func (v *vendor) cloudBillingIn(currency string, rate float64) (text string) {
	v.rate *= rate
	defer func() { v.rate /= rate }()
	names := map[string]string{"gemini-2.5-flash": "Gemini 2.5 Flash GA Text", "claude-sonnet-4-5@20250929": "Claude Sonnet 4.5"}
	kindNames := [kinds]string{"Input", "Input Caching", "Input Cache Write 5m", "Input Cache Write 1h", "Output"}
	lines, costs := v.billed()
	for i, u := range lines {
		for k, n := range u.Tokens {
			sku, amount := names[u.Model]+" "+kindNames[k], "0.0000000000"
			if u.Tier == plugins.BatchTier {
				sku += " Batch"
			}
			if Kind(k) == Output {
				amount = v.amount(costs[i])
			}
			text += fmt.Sprintf(`{"sku":{"description":%q},"usage_start_time":"%s 05:00:00 UTC","cost":%s,"currency":%q,"currency_conversion_rate":%v,"cost_type":"regular","usage":{"amount":%d}}`+"\n",
				sku+" - Predictions", u.Day, amount, currency, rate, n)
		}
	}
	return text
}

// brokenCalls are three calls of a day that broke off, of which two are billed, one at less than its
// price, beside a call that Weir has not seen.
func brokenCalls() *scene {
	s := newScene("openrouter")
	for _, n := range []int{2, 4, 6} {
		c := &s.recorded[s.on(10, n)]
		c.Usage, c.Cost, c.Complete, c.Status, c.Tier = plugins.Usage{}, plugins.Cost{}, false, 502, ""
	}
	around := s.vendor.calls[s.on(10, 0)]
	around.ResponseID = "gen-around"
	s.vendor.calls[s.on(10, 4)].Cost.N /= 2
	s.vendor.calls[s.on(10, 6)] = around
	return s
}

// OpenRouter states what it billed for each call that broke off, so that none of what others used is taken
// for that. Without a key that may read this, all of it is.
func TestBrokenCallsAreAskedFor(t *testing.T) {
	s := brokenCalls()
	report := s.compare(t)
	if found := reasonsOf(report); !slices.Equal(found, []string{"failed 10", "outside 10"}) {
		t.Fatalf("found %q", found)
	}
	want := s.vendor.calls[s.on(10, 2)].Cost.N + s.vendor.calls[s.on(10, 4)].Cost.N
	if d := report.Differences[0]; d.Cost != plugins.KnownCost(want) || d.Requests != plugins.Known(2) || !strings.Contains(d.Explanation, "billed 2 of 3 calls") {
		t.Errorf("%+v, expected %s", d, want)
	}
	listed := func(r *Report, what string) bool {
		return slices.ContainsFunc(r.Incomparable, func(i Item) bool { return strings.Contains(i.Description, what) })
	}
	if !listed(report, "of $100.5 bought") || listed(report, "calls without a usage") {
		t.Errorf("not compared: %v", report.Incomparable)
	}
	for status, says := range map[int]string{
		http.StatusForbidden:           "has no answer, because the key may not read them, it failed, or they are more than 500: 3",
		http.StatusInternalServerError: "has no answer, because the key may not read them, it failed, or they are more than 500: 3",
		http.StatusNotFound:            "does not find: it billed nothing for them, or the key cannot see the calls of other keys: 3",
	} {
		s = brokenCalls()
		s.vendor.hides = status
		if report = s.compare(t); !listed(report, says) || report.Differences[0].Reason != Failed {
			t.Errorf("%d: %q, not compared: %v", status, reasonsOf(report), report.Incomparable)
		}
	}
}

// A comparison asks for 500 calls at most, and not faster than 20 a second.
func TestGenerationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		before := client.Transport
		defer func() { client.Transport = before }()
		client.Transport = handlerTransport{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			_, _ = io.WriteString(w, `{"data":{"native_tokens_prompt":1,"native_tokens_completion":1,"total_cost":0}}`)
		})}
		b := &Bill{generations: &generations{read: &reading{API: API{URL: "http://provider.test"}}, window: month}}
		totals := new(Totals)
		for i := range maxGenerations + 7 {
			b.generations.add(&Call{Start: month.From.Time(), ResponseID: fmt.Sprint(i)}, totals)
		}
		start := time.Now()
		if err := b.readGenerations(t.Context(), new(volume)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); asked != maxGenerations || totals.Asked != maxGenerations || took != maxGenerations*generationPause {
			t.Errorf("asked for %d calls in %v", asked, took)
		}
		if n := len(b.Incomparable); n != 1 || !strings.HasSuffix(b.Incomparable[0].Description, ": 7") {
			t.Errorf("not compared: %v", b.Incomparable)
		}
	})
}

// A bill in another currency is compared in US dollars by the rates of its lines.
func TestBillInAnotherCurrency(t *testing.T) {
	s := newScene("vertex")
	s.vendor.calls = append(s.vendor.calls, billedCall{s.recorded[s.on(9, 2)], "key_other"})
	text := s.vendor.cloudBillingIn("EUR", 0.8613)
	bill := NewFileBill(fileBills["google"].providers...)
	if err := bill.AddGoogle(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	report := s.compareWith(t, bill)
	if found := reasonsOf(report); !slices.Equal(found, []string{"outside 9"}) {
		t.Errorf("found %q", found)
	}
	for want, rate := range map[string]string{"export the column currency_conversion_rate": `null`, "is no rate": `0`} {
		line := `{"sku":{"description":"Gemini 2.5 Flash GA Text Input"},"usage_start_time":"2026-10-05","cost":1,"currency":"EUR","currency_conversion_rate":` + rate + `}`
		if err := bill.AddGoogle(strings.NewReader(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", rate, err)
		}
	}
}
