package money

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
)

// newBudgets returns the budgets of one organisation.
func newBudgets(t testing.TB, budgets ...*Budget) *Budgets {
	t.Helper()
	keys := access.NewAuthenticator(nil, nil, zap.NewNop())
	m := New(&keys, nil, func(name string) bool { return name == "cheap" }, nil, zap.NewNop())
	for _, b := range budgets {
		if err := m.Add(stores.DefaultName, b); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// withLedger is newBudgets with a ledger.
func withLedger(t testing.TB, budgets ...*Budget) (*Budgets, credits.Ledger) {
	t.Helper()
	ledger, err := embedded.Open(t.TempDir(), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.Close(t.Context()) })
	m := newBudgets(t, budgets...)
	m.Ledger = func(string) (credits.Ledger, error) { return ledger, nil }
	return m, ledger
}

// spendingOf is a call of a user that begins at a time, and costs at most so much.
func spendingOf(user string, at storage.Timestamp, most plugins.Nanodollars) Spending {
	return Spending{
		Org: stores.DefaultName, Provider: "one", Model: "m",
		Record:   &storage.Record{ID: uuid.New(), Org: stores.DefaultName, UserID: user, CreatedAt: at},
		MaxUsage: func(int64) bound.Used { return bound.Used{Cost: plugins.KnownCost(most)} },
	}
}

// Calls that two budgets count in contrary order neither wait for each other nor leave
// anything set aside.
func TestContraryOrder(t *testing.T) {
	ab := []*Budget{{Name: "a", Limit: "40", Per: "user", Trust: true, Window: "total"}, {Name: "b", Limit: "50", Window: "total"}}
	forth, ledger := withLedger(t, ab...)
	back := newBudgets(t, &Budget{Name: "b", Limit: "50", Window: "total"}, &Budget{Name: "a", Limit: "40", Per: "user", Trust: true, Window: "total"})
	back.Ledger = forth.Ledger
	var calls sync.WaitGroup
	var spent atomic.Int64
	for i := range 64 {
		calls.Go(func() {
			numbers := rand.New(rand.NewPCG(uint64(i), 1))
			for range 50 {
				budgets := []*Budgets{forth, back}[numbers.IntN(2)]
				bill, err := budgets.Admit(t.Context(), spendingOf(fmt.Sprint("user", i%4), 1, plugins.Nanodollars(1+numbers.Int64N(1e9))))
				if err != nil {
					continue
				}
				n := numbers.Int64N(int64(bill.Reserved().N) + 1)
				if err := errors.Join(bill.Charge(t.Context(), bound.Used{Cost: plugins.KnownCost(plugins.Nanodollars(n))}), bill.Release(t.Context())); err != nil {
					t.Error(err)
				}
				spent.Add(n)
			}
		})
	}
	calls.Wait()
	total := plugins.Nanodollars(0)
	for _, b := range forth.Configured(stores.DefaultName) {
		list, err := b.Counted(t.Context(), ledger)
		if err != nil {
			t.Fatal(err)
		}
		sum := plugins.Nanodollars(0)
		for _, of := range list {
			if of.Reserved != 0 || of.Spent > b.Cap() {
				t.Errorf("%s of %q: spent %s, reserved %s", b.Name, of.Value, of.Spent, of.Reserved)
			}
			sum += of.Spent
		}
		if total = sum; sum != plugins.Nanodollars(spent.Load()) {
			t.Errorf("%s counts %s, and %s was charged", b.Name, sum, plugins.Nanodollars(spent.Load()))
		}
	}
	if total < 40e9 {
		t.Errorf("only %s was spent", total)
	}
}

// The first calls of users whom nobody has seen are bounded as all others are: of eight calls
// at once of each user, only those pass that fit.
func TestFirstCallsOfUnknownUsers(t *testing.T) {
	budgets, _ := withLedger(t, &Budget{Name: "each", Limit: "1", Per: "user", Trust: true})
	now := storage.Millis(time.Now())
	var calls sync.WaitGroup
	passed := make([]atomic.Int64, 8)
	for i := range 64 {
		calls.Go(func() {
			if _, err := budgets.Admit(t.Context(), spendingOf(fmt.Sprint("user", i%8), now, 3e8)); err == nil {
				passed[i%8].Add(1)
			}
			if _, err := budgets.Admit(t.Context(), spendingOf(fmt.Sprint("user", i%8), now, 11e8)); err == nil {
				t.Error("a call passes that fits into no budget")
			}
		})
	}
	calls.Wait()
	for i := range passed {
		if n := passed[i].Load(); n != 3 {
			t.Errorf("%d calls of user%d pass, and 3 fit", n, i)
		}
	}
}

// Users whose names are masked have a budget each, under a name that the ledger may keep.
func TestUsersAreMaskedInTheLedger(t *testing.T) {
	budgets, ledger := withLedger(t, &Budget{Name: "each", Limit: "1", Window: "total", Per: "user", Trust: true})
	m, err := mask.New([]*mask.Rule{{Kinds: []string{"email"}}})
	if err == nil {
		m, err = m.WithKey([]byte("secret"), "")
	}
	if err != nil {
		t.Fatal(err)
	}
	budgets.Mask = func(string, mask.Content) *mask.Masker { return m }
	now := storage.Millis(time.Now())
	for _, user := range []string{"alice@example.com", "bob@example.com"} {
		if _, err := budgets.Admit(t.Context(), spendingOf(user, now, 8e8)); err != nil {
			t.Errorf("%s: %v", user, err)
		}
		if _, err := budgets.Admit(t.Context(), spendingOf(user, now, 8e8)); err == nil {
			t.Errorf("%s has more than the budget", user)
		}
	}
	all, err := budgets.Configured(stores.DefaultName)[0].Counted(t.Context(), ledger)
	if err != nil || len(all) != 2 || strings.Contains(fmt.Sprintf("%+v", all), "example.com") {
		t.Errorf("%+v, %v", all, err)
	}
}

// A budget that comes to count something else begins at 0, and goes on when it counts dollars
// again.
func TestAnotherQuantity(t *testing.T) {
	_, ledger := withLedger(t)
	now := storage.Millis(time.Now())
	for _, c := range []struct {
		quantity string
		spent    plugins.Nanodollars
	}{{"usd", 1e9}, {"requests", 1}, {"usd", 2e9}} {
		b := &Budget{Name: "b", Limit: "5", Window: "total", Quantity: c.quantity}
		budgets := newBudgets(t, b)
		budgets.Ledger = func(string) (credits.Ledger, error) { return ledger, nil }
		bill, err := budgets.Admit(t.Context(), spendingOf("", now, 1e9))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(bill.Charge(t.Context(), bound.Used{Cost: plugins.KnownCost(1e9)}), bill.Release(t.Context())); err != nil {
			t.Fatal(err)
		}
		if list, err := b.Counted(t.Context(), ledger); err != nil || len(list) != 1 || list[0].Spent != c.spent {
			t.Errorf("in %s it counts %+v, %v; want %d", c.quantity, list, err, c.spent)
		}
	}
}

// A call over midnight is one of the day on which it began, whenever it is charged.
func TestCallOverMidnight(t *testing.T) {
	budgets, ledger := withLedger(t, &Budget{Name: "day", Limit: "1", Window: "day", Timezone: "Europe/Berlin"})
	before, after := moment(t, "2026-03-28T22:59:59Z"), moment(t, "2026-03-28T23:00:00Z")
	late, err := budgets.Admit(t.Context(), spendingOf("", before, 9e8))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := budgets.Admit(t.Context(), spendingOf("", before, 2e8)); err == nil {
		t.Error("a second call of the first day passes")
	}
	early, err := budgets.Admit(t.Context(), spendingOf("", after, 9e8))
	if err != nil {
		t.Fatal(err)
	}
	charge := func(bill *Bill, n plugins.Nanodollars) error {
		return bill.Charge(t.Context(), bound.Used{Cost: plugins.KnownCost(n)})
	}
	if err := errors.Join(charge(early, 1e8), charge(late, 7e8), early.Release(t.Context()), late.Release(t.Context())); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[storage.Timestamp]plugins.Nanodollars{before: 7e8, after: 1e8} {
		b, err := ledger.Balance(t.Context(), budgets.Configured(stores.DefaultName)[0].hold(new(storage.Record), at))
		if err != nil || b.Spent != want || b.Reserved != 0 {
			t.Errorf("the day of %s: spent %s, reserved %s, %v; want %s", at, b.Spent, b.Reserved, err, want)
		}
	}
}

// 24 hours of calls of three keys, in bursts, under limits of requests and tokens per minute:
// what is admitted is what a reference says that adds up the steps by itself. No limit
// refuses because of another, and none for longer than its window.
func TestDayOfLimits(t *testing.T) {
	requests := &Budget{Name: "requests", Limit: "6", Quantity: "requests", Window: "1m", Per: "user", Trust: true}
	tokens := &Budget{Name: "tokens", Limit: "5000", Quantity: "tokens", Window: "1m", Per: "user", Trust: true}
	budgets, _ := withLedger(t, requests, tokens)
	type use struct {
		step storage.Timestamp
		n    int64
	}
	made := make(map[string][]use) // by limit and user
	left := func(limit, user string, step storage.Timestamp, most int64) int64 {
		kept := slices.DeleteFunc(made[limit+user], func(u use) bool { return u.step+60 < step })
		made[limit+user] = kept
		for _, u := range kept {
			most -= u.n
		}
		return most
	}
	numbers := rand.New(rand.NewPCG(3, 4))
	at := storage.Millis(time.Now()) // a ledger may forget what is long over
	end := at + storage.Timestamp((24 * time.Hour).Milliseconds())
	admitted, refused := 0, 0
	for at < end {
		if at += storage.Timestamp(numbers.Int64N(6_000)); numbers.IntN(200) == 0 {
			at += storage.Timestamp(numbers.Int64N(600_000)) // a pause
		}
		user, n, step := fmt.Sprint("user", numbers.IntN(3)), 1+numbers.Int64N(1500), at/1000
		s := spendingOf(user, at, 0)
		s.MaxUsage = func(int64) bound.Used {
			return bound.Used{Usage: plugins.Usage{Input: plugins.Known(n), Output: plugins.Known(0)}}
		}
		fits := left("requests", user, step, 6) >= 1 && left("tokens", user, step, 5000) >= n
		bill, err := budgets.Admit(t.Context(), s)
		if fits != (err == nil) {
			t.Fatalf("at %s a call of %s with %d tokens: %v, and the reference says %t", at, user, n, err, fits)
		}
		if err != nil {
			refused++
			continue
		}
		admitted++
		used := numbers.Int64N(n + 1)
		if err := errors.Join(bill.Charge(t.Context(), bound.Used{Usage: plugins.Usage{Input: plugins.Known(used), Output: plugins.Known(0)}}), bill.Release(t.Context())); err != nil {
			t.Fatal(err)
		}
		made["requests"+user] = append(made["requests"+user], use{step, 1})
		made["tokens"+user] = append(made["tokens"+user], use{step, used})
	}
	if admitted < 1000 || refused < 1000 {
		t.Errorf("%d admitted, %d refused", admitted, refused)
	}
}

// Headers list no more limits than clients can read, and tell the tightest of all.
func TestManyRateLimits(t *testing.T) {
	var limits []*Budget
	for i := range 500 {
		limits = append(limits, &Budget{Name: fmt.Sprint("limit", i), Limit: strconv.Itoa(1000 - i), Quantity: "requests", Window: "1h"})
	}
	budgets, _ := withLedger(t, limits...)
	bill, err := budgets.Admit(t.Context(), spendingOf("ada", storage.Millis(time.Now()), 1))
	if err != nil {
		t.Fatal(err)
	}
	header := make(http.Header)
	bill.SetRateLimits(t.Context(), header)
	if n := strings.Count(header.Get("RateLimit"), "limit"); n != maxListed || header.Get("X-RateLimit-Limit-Requests") != "501" {
		t.Errorf("%d limits are listed; the tightest is %s", n, header.Get("X-RateLimit-Limit-Requests"))
	}
}
