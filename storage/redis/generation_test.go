package redis

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirhq/weir/storage/credits"
)

// command sends Redis what an operator would.
func command(t testing.TB, l *Ledger, words ...string) {
	t.Helper()
	do(t, l.client.do(t.Context(), func(ctx context.Context, server rueidis.Client) error {
		return server.Do(ctx, server.B().Arbitrary(words...).Build()).Error()
	}))
}

// accept accepts the loss of what a node knows, as the error tells.
func accept(t testing.TB, l *Ledger) {
	t.Helper()
	command(t, l, "HSET", l.client.key("generation"), l.generation.known, "accepted")
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

	accept(t, l)
	eventually(t, func() bool { return l.Seed(t.Context(), "acme", 100) == nil })
	do(t, l.flush(t.Context()))
	do(t, restarted.ledger.Seed(t.Context(), "acme", 100))
	if b, want := balance(t, fresh), (credits.Balance{Account: acme, Granted: 100, Spent: 70}); b != want {
		t.Errorf("after the operator has accepted the loss: %+v, want %+v", b, want)
	}
}

// What was spent since a copy of Redis's data was made cannot be spent again with the copy
// until an operator accepts the loss: not by a node that runs on, nor by one that is started
// again.
func TestOlderCopyIsNoticed(t *testing.T) {
	server := start(t)
	o := server.options()
	l := open(t, o)
	do(t, l.Seed(t.Context(), "acme", 100))
	backup := t.TempDir()
	do(t, os.CopyFS(backup, os.DirFS(server.dir+"/appendonlydir")))

	later := strconv.FormatInt(time.Now().Add(2*time.Minute).Unix(), 10)
	command(t, l, "HSET", l.client.key("generation"), "seen", later)
	do(t, l.renew(t.Context()))
	r := of(90)
	do(t, l.Reserve(t.Context(), r))
	do(t, l.Charge(t.Context(), r, 60))
	restore := func() {
		server.kill()
		do(t, os.RemoveAll(server.dir+"/appendonlydir"))
		do(t, os.CopyFS(server.dir+"/appendonlydir", os.DirFS(backup)))
		server.run()
	}
	restore()
	o.Allowance = 1000
	restarted, err := Open(o)
	do(t, err)
	t.Cleanup(func() { _ = restarted.Close(context.Background()) })
	eventually(t, restarted.client.answers.Load)
	for name, l := range map[string]*Ledger{"the node": l, "the node after a restart": restarted.ledger} {
		eventually(t, func() bool { return forgotten(l.renew(t.Context())) })
		if err := l.Reserve(t.Context(), of(1)); !forgotten(err) {
			t.Errorf("%s: Reserve = %v", name, err)
		}
		if _, err := l.Balance(t.Context(), credits.Hold{Account: acme}); !forgotten(err) {
			t.Errorf("%s: Balance = %v", name, err)
		}
	}

	accept(t, l)
	for name, l := range map[string]*Ledger{"the node": l, "the node after a restart": restarted.ledger} {
		eventually(t, func() bool { return l.renew(t.Context()) == nil })
		if err := l.Reserve(t.Context(), of(1)); err != nil {
			t.Errorf("%s, after the loss was accepted: %v", name, err)
		}
	}
	restore() // the loss of a copy is accepted once
	eventually(t, func() bool { return forgotten(l.renew(t.Context())) })
}

// A replica that lacks the last seconds goes on, and the log tells what is lost.
func TestFewSecondsLostAreTold(t *testing.T) {
	o := start(t).options()
	core, told := observer.New(zap.ErrorLevel)
	o.Logger = zap.New(core)
	l := open(t, o)
	do(t, l.Seed(t.Context(), "acme", 100))
	do(t, l.renew(t.Context()))
	if all := told.All(); len(all) != 0 {
		t.Errorf("nothing is lost: %v", all)
	}
	command(t, l, "HSET", l.client.key("generation"), "seen", strconv.FormatInt(time.Now().Add(-30*time.Second).Unix(), 10))
	do(t, l.renew(t.Context()))
	do(t, l.Reserve(t.Context(), of(1)))
	all := told.FilterMessageSnippet("older data").All()
	if len(all) != 1 || all[0].ContextMap()["missing_at_least_seconds"].(int64) < 29 {
		t.Errorf("told %v", told.All())
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
