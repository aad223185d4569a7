package llmapp

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
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
	own := &callerLimit{policy: policy, unit: 1}
	quota, err := strconv.ParseInt(strings.TrimSpace(parts[0]), 10, 48)
	if own.quota = quota; err != nil || quota < 1 {
		return nil, malformed
	}
	b := &Budget{Limit: strconv.FormatInt(quota, 10), Quantity: requestCount.name, Trust: true, counted: counted{own: own}}
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
			own.unit = centNano
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

// SetCallerLimit tells a client what is left of the limit that it set.
func (t *Ticket) SetCallerLimit(ctx context.Context, header http.Header) {
	for _, b := range t.budgets {
		if b.own == nil {
			continue
		}
		balance, err := t.ledger.Balance(ctx, b.hold)
		if err != nil { // the call goes on, and its client is told nothing
			return
		}
		header["Service-Ratelimit-Limit"] = []string{strconv.FormatInt(b.own.quota, 10)}
		header["Service-Ratelimit-Remaining"] = []string{strconv.FormatInt(int64(max(balance.Available(), 0)/b.own.unit), 10)}
		header["Service-Ratelimit-Policy"] = []string{b.own.policy}
	}
}
