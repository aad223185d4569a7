package redis

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/storage/credits"
)

// command sends Redis what an operator would.
func command(t testing.TB, l *Ledger, words ...string) {
	t.Helper()
	do(t, l.client.do(t.Context(), func(ctx context.Context, server rueidis.Client) error {
		return server.Do(ctx, server.B().Arbitrary(words...).Build()).Error()
	}))
}

// A Redis that has lost its data grants nothing again until an operator accepts the loss,
// not even to a node that starts afresh, and not within the allowance.
func TestFlushedCreditsStaySpent(t *testing.T) {
	o := start(t).options()
	l := open(t, o)
	do(t, l.Seed(t.Context(), "acme", 100))
	r := of(90)
	do(t, l.Reserve(t.Context(), r))
	do(t, l.Charge(t.Context(), r, 60))
	command(t, l, "FLUSHALL")

	o.Allowance = 1000
	restarted, err := Open(o)
	do(t, err)
	t.Cleanup(func() { _ = restarted.Close(context.Background()) })
	eventually(t, restarted.client.answers.Load)
	for name, l := range map[string]*Ledger{"the node": l, "the node after a restart": restarted.ledger} {
		for method, err := range map[string]error{
			"Seed":    l.Seed(t.Context(), "acme", 100),
			"Grant":   l.Grant(t.Context(), "acme", 100),
			"Reserve": l.Reserve(t.Context(), of(1)),
		} {
			if !errors.Is(err, credits.ErrUnavailable) || !strings.Contains(err.Error(), "HSET") {
				t.Errorf("%s: %s = %v, want ErrUnavailable that tells how to accept the loss", name, method, err)
			}
		}
		if _, err := l.Balance(t.Context(), credits.Hold{Account: acme}); !errors.Is(err, credits.ErrUnavailable) {
			t.Errorf("%s: Balance = %v", name, err)
		}
	}
	if err := l.Charge(t.Context(), r, 70); !errors.Is(err, credits.ErrUnavailable) {
		t.Errorf("Charge = %v", err)
	}

	// A node that knows nothing of the loss does not make the others forget it.
	o.File += "2"
	fresh := open(t, o)
	if err := l.Seed(t.Context(), "acme", 100); !errors.Is(err, credits.ErrUnavailable) {
		t.Errorf("beside a fresh node: Seed = %v", err)
	}

	known, err := os.ReadFile(l.generation.path)
	do(t, err)
	command(t, l, "HSET", l.client.key("generation"), string(known), "accepted")
	eventually(t, func() bool { return l.Seed(t.Context(), "acme", 100) == nil })
	do(t, l.flush(t.Context()))
	do(t, restarted.ledger.Seed(t.Context(), "acme", 100))
	if b, want := balance(t, fresh), (credits.Balance{Account: acme, Granted: 100, Spent: 70}); b != want {
		t.Errorf("after the operator has accepted the loss: %+v, want %+v", b, want)
	}
}

// An account that Redis has evicted is no new account.
func TestEvictedAccountIsNotGrantedAgain(t *testing.T) {
	l := open(t, start(t).options())
	do(t, l.Seed(t.Context(), "acme", 100))
	command(t, l, "DEL", l.org("acme"))
	if err := l.Seed(t.Context(), "acme", 100); !errors.Is(err, credits.ErrUnavailable) {
		t.Errorf("Seed = %v", err)
	}
	if err := l.Reserve(t.Context(), of(1)); err == nil {
		t.Error("something was reserved")
	}
}
