package money

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// maxListed bounds how many limits a header lists: clients refuse lines of 64 KiB
// (https://github.com/python/cpython/blob/main/Lib/http/client.py).
const maxListed = 20

// SetRateLimits tells a client which limits of requests and tokens count the call, and what is
// left of them: in `RateLimit` and `RateLimit-Policy`
// (https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/), and the tightest
// of each in OpenAI's `x-ratelimit-…`
// (https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers).
func (t *Bill) SetRateLimits(ctx context.Context, header http.Header) {
	if len(t.bounding) == 0 {
		return
	}
	var policies, states []string
	tightest := make(map[string]plugins.Nanodollars)
	now := time.Now()
	for _, b := range t.bounding {
		if b.budget.callerLimit != nil || b.budget.Observe || b.budget.quantity == dollars || b.budget.quantity == concurrent {
			continue
		}
		balance, err := t.ledger.Balance(ctx, b.hold)
		if err != nil { // the call goes on, and its client is told nothing
			return
		}
		remaining := max(balance.Available(), 0)
		name, unit := structuredString(b.budget.Name), structuredString(b.budget.quantity.name)
		policy := fmt.Sprintf("%s;q=%d;qu=%s", name, b.budget.limit, unit)
		state := fmt.Sprintf("%s;r=%d", name, remaining)
		window, reset := b.hold.Ends-b.hold.Begins, b.hold.Ends
		if b.budget.rolling > 0 { // at the latest
			window, reset = storage.Timestamp(b.budget.rolling), storage.Millis(now)+storage.Timestamp(b.budget.rolling)
		}
		if reset > 0 {
			policy += ";w=" + seconds(time.Duration(window)*time.Millisecond)
			state += ";t=" + seconds(reset.Time().Sub(now))
		}
		if len(policies) < maxListed {
			policies, states = append(policies, policy), append(states, state)
		}
		kind := "Tokens"
		if b.budget.quantity == requestCount {
			kind = "Requests"
		}
		if least, ok := tightest[kind]; ok && least <= remaining {
			continue
		}
		tightest[kind] = remaining
		header.Set("X-Ratelimit-Limit-"+kind, strconv.FormatInt(int64(b.budget.limit), 10))
		header.Set("X-Ratelimit-Remaining-"+kind, strconv.FormatInt(int64(remaining), 10))
		header.Del("X-Ratelimit-Reset-" + kind)
		if reset > 0 {
			header.Set("X-Ratelimit-Reset-"+kind, reset.Time().Sub(now).Round(time.Millisecond).String())
		}
	}
	if policies != nil {
		header.Set("Ratelimit-Policy", strings.Join(policies, ", "))
		header.Set("Ratelimit", strings.Join(states, ", "))
	}
}

// seconds writes whole seconds, at least 1.
func seconds(d time.Duration) string {
	return strconv.Itoa(max(int(d.Round(time.Second)/time.Second), 1))
}

// structuredString writes a string of a structured field, which is ASCII
// (https://www.rfc-editor.org/rfc/rfc9651#section-3.3.3).
func structuredString(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
