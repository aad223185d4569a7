package money

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// callerLabel is the label of limits that callers set.
var callerLabel = metric.Constant("caller")

// centNano is a cent in nanodollars.
const centNano = 10_000_000

// callerLimit is how a caller wrote a limit of its own calls, and in what it counts.
type callerLimit struct {
	policy string
	quota  int64
	unit   plugins.Nanodollars
}

// CallerLimit reads a limit that a caller sets to its own calls, such as
// `1000;w=60;u=request;s=user`: the quota, the window in seconds, `request` or `cents`, and
// whose calls count together: of a `user`, or of a value of the property of that name.
// Default: all calls of the organisation that name the same policy. It returns nil for an
// empty policy. The limit counts beside the organisation's own budgets, so that it can only
// narrow what they allow.
func CallerLimit(org, policy string) (*Budget, *plugins.Error) {
	if strings.TrimSpace(policy) == "" {
		return nil, nil
	}
	malformed := plugins.Invalid("", "The rate limit policy '%.100s' is malformed: want `<quota>;w=<seconds, 60 to 31536000>;u=request|cents;s=user|<property>`.", policy)
	parts := strings.Split(policy, ";")
	limit := &callerLimit{policy: policy, unit: 1}
	quota, err := strconv.ParseInt(strings.TrimSpace(parts[0]), 10, 48)
	if limit.quota = quota; err != nil || quota < 1 {
		return nil, malformed
	}
	b := &Budget{Limit: strconv.FormatInt(quota, 10), Quantity: requestCount.name, Trust: true, budgetTerms: budgetTerms{callerLimit: limit}}
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch unit := strings.ToLower(value); {
		case name == "w":
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err != nil || seconds < 60 || seconds > 31_536_000 {
				return nil, malformed
			}
			b.Window = value + "s"
		case name == "u" && unit == "request":
		case name == "u" && unit == "cents":
			limit.unit = centNano
			b.Quantity, b.Limit = dollars.name, fmt.Sprintf("%d.%02d", quota/100, quota%100)
		case name == "s" && value == "user":
			b.Per = value
		case name == "s" && value != "":
			b.Per = "property." + value
		default:
			return nil, malformed
		}
	}
	b.Name = "RateLimit-Policy " + policy
	if b.Window == "" || b.provision(org, nil) != nil {
		return nil, malformed
	}
	b.label = callerLabel
	return b, nil
}

// maxCallerAccounts is how many accounts the limits of callers have in an organisation. A
// ledger keeps an account as long as its window, and callers make up as many as they like.
const maxCallerAccounts = 50_000

// callerAccounts are the accounts of limits that callers set, by organisation. The zero value
// has none.
type callerAccounts struct {
	mu  sync.Mutex // guards org
	org map[string]*accountsOf
}

// accountsOf has when a ledger forgets each account of an organisation, and when to look
// again for those that are forgotten.
type accountsOf struct {
	until map[credits.Account]storage.Timestamp
	again storage.Timestamp
}

// admit notes the account of a limit, or refuses one more.
func (c *callerAccounts) admit(h credits.Hold) error {
	now := storage.Millis(time.Now())
	id := h.Account
	id.Begins, id.Ends = 0, 0
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.org[h.Org]
	if of == nil {
		of = &accountsOf{until: make(map[credits.Account]storage.Timestamp)}
		if c.org == nil {
			c.org = make(map[string]*accountsOf)
		}
		c.org[h.Org] = of
	}
	if of.until[id] == 0 && len(of.until) >= maxCallerAccounts {
		if of.again <= now {
			of.again = now + storage.Timestamp(time.Minute.Milliseconds())
			maps.DeleteFunc(of.until, func(_ credits.Account, until storage.Timestamp) bool { return until < now })
		}
		if len(of.until) >= maxCallerAccounts {
			return &plugins.Error{
				Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: codeRate.String(), Final: true,
				Message: fmt.Sprintf("Callers of the organization count %d limits of their own, and no more fit: use a rate limit policy and a value that are there, or none.", maxCallerAccounts),
			}
		}
	}
	of.until[id] = h.Forgotten()
	return nil
}

// SetCallerLimit tells a client what is left of the limit that it set.
func (t *Bill) SetCallerLimit(ctx context.Context, header http.Header) {
	for _, b := range t.bounding {
		if b.budget.callerLimit == nil {
			continue
		}
		balance, err := t.ledger.Balance(ctx, b.hold)
		if err != nil { // the call goes on, and its client is told nothing
			return
		}
		header["Service-Ratelimit-Limit"] = []string{strconv.FormatInt(b.budget.callerLimit.quota, 10)}
		header["Service-Ratelimit-Remaining"] = []string{strconv.FormatInt(int64(max(balance.Available(), 0)/b.budget.callerLimit.unit), 10)}
		header["Service-Ratelimit-Policy"] = []string{b.budget.callerLimit.policy}
	}
}
