package money

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirhq/weir/modules/internal/access"
	headers "github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
)

// A window begins at midnight of the time zone, also on the days on which clocks change, and
// each window begins where the one before ends.
func TestWindowsOfBudgets(t *testing.T) {
	for _, c := range []struct{ window, zone, at, begins, ends string }{
		{"day", "", "2026-03-29T12:00:00Z", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"},
		{"day", "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"}, // of 23 hours
		{"day", "Europe/Berlin", "2026-10-25T22:59:59Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"}, // of 25 hours
		{"day", "America/St_Johns", "2026-03-08T12:00:00Z", "2026-03-08T03:30:00Z", "2026-03-09T02:30:00Z"},
		{"day", "America/St_Johns", "2026-11-01T12:00:00Z", "2026-11-01T02:30:00Z", "2026-11-02T03:30:00Z"},
		{"week", "Europe/Berlin", "2026-11-24T12:00:00Z", "2026-11-22T23:00:00Z", "2026-11-29T23:00:00Z"},
		{"month", "Europe/Berlin", "2026-10-31T23:30:00Z", "2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z"},
		{"month", "", "2028-02-29T23:59:59Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"year", "America/St_Johns", "2026-07-01T00:00:00Z", "2026-01-01T03:30:00Z", "2027-01-01T03:30:00Z"},
	} {
		b := &Budget{Name: "b", Limit: "1", Window: c.window, Timezone: c.zone}
		if err := b.provision("acme", func(string) bool { return false }); err != nil {
			t.Fatal(err)
		}
		begins, ends := b.Bounds(moment(t, c.at))
		if begins != moment(t, c.begins) || ends != moment(t, c.ends) {
			t.Errorf("%s in %s at %s: from %s to %s, want %s to %s", c.window, c.zone, c.at, begins, ends, c.begins, c.ends)
		}
	}
	for _, window := range []string{"day", "week", "month", "year"} {
		for _, zone := range []string{"Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"} {
			b := &Budget{Name: "b", Limit: "1", Window: window, Timezone: zone}
			if err := b.provision("acme", func(string) bool { return false }); err != nil {
				t.Fatal(err)
			}
			at := moment(t, "2026-01-01T00:00:00Z")
			for range 800 {
				begins, ends := b.Bounds(at)
				first, firstEnds := b.Bounds(begins)
				last, lastEnds := b.Bounds(ends - 1)
				if begins > at || at >= ends || first != begins || last != begins || firstEnds != ends || lastEnds != ends {
					t.Fatalf("%s in %s: %s is in %s to %s, whose first is in %s to %s and last in %s to %s", window, zone, at, begins, ends, first, firstEnds, last, lastEnds)
				}
				at = ends
			}
		}
	}
}

func moment(t *testing.T, text string) storage.Timestamp {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return storage.Millis(at)
}

// A budget that cannot be enforced as it is written is refused when the configuration loads.
func TestMalformedBudgets(t *testing.T) {
	for want, b := range map[string]*Budget{
		"takes a name":                {Limit: "1"},
		"limit":                       {Name: "b", Limit: "-1"},
		"there is no window":          {Name: "b", Limit: "1", Window: "fortnight"},
		"no time zone":                {Name: "b", Limit: "1", Timezone: "Berlin"},
		"per takes":                   {Name: "b", Limit: "1", Per: "cost"},
		"per takes key":               {Name: "b", Limit: "1", Per: "property."},
		"say trust":                   {Name: "b", Limit: "1", Per: "session"},
		"at 1 to 100 percent":         {Name: "b", Limit: "1", Stages: []*Stage{{At: 101}}},
		"two stages are at 80%":       {Name: "b", Limit: "1", Stages: []*Stage{{At: 80}, {At: 80}}},
		"there is no alias cheap":     {Name: "b", Limit: "1", Stages: []*Stage{{At: 80, Use: "cheap"}}},
		"has no stages":               {Name: "b", Limit: "1", Quantity: "concurrent", Stages: []*Stage{{At: 80}}},
		"on_unpriced":                 {Name: "b", Limit: "1", Unpriced: "maybe"},
		"cost is not known before":    {Name: "b", Limit: "1", Filter: []byte(`{"request_response_rmt":{"cost":{"gt":1}}}`)},
		"status is not known before":  {Name: "b", Limit: "1", Filter: []byte(`{"response":{"status":{"equals":200}}}`)},
		"filter":                      {Name: "b", Limit: "1", Filter: []byte(`{"nope":{}}`)},
		"request_body is not known b": {Name: "b", Limit: "1", Filter: []byte(`{"request_response_rmt":{"request_body":{"contains":"x"}}}`)},
	} {
		if err := b.provision("acme", func(string) bool { return false }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	m := newBudgets(t, &Budget{Name: "b", Limit: "1", Stages: []*Stage{{At: 95, Use: "cheap"}}})
	if err := m.Add(stores.DefaultName, &Budget{Name: "b", Limit: "2"}); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("twice: %v", err)
	}
	if org, b := m.Diverting(stores.DefaultName); org != stores.DefaultName || b == nil || b.Name != "b" {
		t.Errorf("a proxy would have to call another model because of %v of %q", b, org)
	}
	if _, b := m.Diverting("eu"); b != nil {
		t.Errorf("a proxy of another store would have to call another model because of %s", b.Name)
	}
}

func createdKey(id string, s control.Settings) *access.Key {
	k, err := access.NewKey(&control.Key{ID: id, Org: stores.DefaultName, Settings: s}, nil, stores.DefaultName)
	if err != nil {
		panic(err)
	}
	return k
}

// What only the caller says counts where the budget trusts callers.
func TestClaimsOfCallers(t *testing.T) {
	plain := &Budget{Name: "plain", Limit: "1", Per: "user"}
	trusting := &Budget{Name: "trusting", Limit: "1", Per: "property.team", Trust: true}
	web := &Budget{Name: "web", Limit: "1", Filter: []byte(`{"properties":{"team":{"equals":"web"}}}`)}
	m := newBudgets(t, plain, trusting, web)
	stamped := createdKey("key_1", control.Settings{User: "bob", Properties: map[string]string{"team": "web"}})
	for name, c := range map[string]struct {
		key  *access.Key
		want string
	}{
		"no key":        {nil, "plain=;trusting=mobile;"},
		"a plain key":   {createdKey("", control.Settings{}), "plain=;trusting=mobile;"},
		"a stamped key": {stamped, "plain=bob;trusting=web;web=;"},
		"a key that trusts users": {
			createdKey("", control.Settings{Trust: []string{control.TrustUser}}), "plain=ada;trusting=mobile;",
		},
		"a key that trusts properties, and stamps one": {
			createdKey("", control.Settings{Trust: []string{control.TrustProperties, control.TrustSession}, Properties: map[string]string{"team": "web"}}),
			"plain=;trusting=web;web=;",
		},
	} {
		r := &storage.Record{Org: stores.DefaultName, UserID: "ada", Properties: map[string]string{"team": "mobile"}}
		if c.key != nil {
			c.key.Stamp(r)
		}
		got := ""
		bounding, err := m.holdsFor(&Spending{Org: stores.DefaultName, Key: c.key, Account: new(providers.Account), Record: r})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bounding {
			got += b.budget.Name + "=" + b.hold.Value + ";"
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A call that no budget counts takes no memory to find that out.
func TestCallsThatNoBudgetCounts(t *testing.T) {
	m := newBudgets(t, []*Budget{
		{Name: "team", Limit: "1", Filter: []byte(`{"properties":{"team":{"equals":"web"}}}`)},
		{Name: "user", Limit: "1", Per: "user", Trust: true, Filter: []byte(`{"left":{"request":{"user_id":{"equals":"ada"}}},"operator":"and","right":{"request_response_rmt":{"provider":{"equals":"OPENAI"}}}}`)},
	}...)
	s := &Spending{Org: stores.DefaultName, Key: createdKey("", control.Settings{User: "bob"}), Account: new(providers.Account), Record: &storage.Record{Org: stores.DefaultName, UserID: "bob", Properties: map[string]string{"team": "mobile"}}}
	allocations := testing.AllocsPerRun(1000, func() {
		if counted, err := m.holdsFor(s); len(counted) > 0 || err != nil {
			t.Fatal(counted, err)
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations for each call", allocations)
	}
}

// A rolling window never holds more than its limit, refuses only what would be too much within
// the window and one step, and says when a call passes.
func TestRollingWindows(t *testing.T) {
	numbers := rand.New(rand.NewPCG(1, 2))
	for _, quantity := range []string{"requests", "tokens"} {
		for _, window := range []string{"1s", "1m", "7m", "1h"} {
			b := &Budget{Name: "b", Limit: map[string]string{"requests": "40", "tokens": "400"}[quantity], Quantity: quantity, Window: window}
			if err := b.provision("acme", func(string) bool { return false }); err != nil {
				t.Fatal(err)
			}
			ledger, err := embedded.Open(t.TempDir(), nil, zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			length := storage.Timestamp(b.rolling)
			step := (length + 59) / 60
			type use struct {
				at storage.Timestamp
				n  plugins.Nanodollars
			}
			var made []use
			within := func(from, to storage.Timestamp) (sum plugins.Nanodollars) { // from is not within
				for _, u := range made {
					if u.at > from && u.at <= to {
						sum += u.n
					}
				}
				return sum
			}
			try := func(at storage.Timestamp, n plugins.Nanodollars) *credits.InsufficientError {
				r := credits.Reservation{ID: uuid.New(), Org: "acme", Amount: n, Holds: []credits.Hold{b.hold(new(storage.Record), at)}}
				err := ledger.Reserve(t.Context(), r)
				if short, ok := errors.AsType[*credits.InsufficientError](err); ok {
					return short
				}
				if err == nil {
					err = errors.Join(ledger.Charge(t.Context(), r, n), ledger.Release(t.Context(), r))
				}
				if err != nil {
					t.Fatal(err)
				}
				made = append(made, use{at, n})
				return nil
			}
			at, refused := moment(t, "2026-03-28T23:59:58Z"), 0
			for range 2000 {
				at += storage.Timestamp(numbers.Int64N(int64(length) / 30))
				n := plugins.Nanodollars(1)
				if quantity == "tokens" {
					n += plugins.Nanodollars(numbers.IntN(20))
				}
				short := try(at, n)
				if sum := within(at-length, at); sum > b.limit {
					t.Fatalf("%s: %d in the window that ends at %s", window, sum, at)
				}
				if short == nil {
					continue
				}
				refused++
				if sum := within(at-61*step, at); sum+n <= b.limit {
					t.Fatalf("%s: %d and %d were refused at %s", window, sum, n, at)
				}
				if short.FreeAt <= at || short.FreeAt > at+61*step {
					t.Fatalf("%s: free at %s, after a refusal at %s", window, short.FreeAt, at)
				}
				if numbers.IntN(4) == 0 {
					at = short.FreeAt
					if again := try(at, n); again != nil {
						t.Fatalf("%s: refused again at %s", window, at)
					}
				}
			}
			if refused == 0 {
				t.Errorf("%s: nothing was refused", window)
			}
			if err := ledger.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A budget that names a property as no header spells it counts nothing: the log says so.
func TestPropertiesThatNoHeaderSets(t *testing.T) {
	spelled, err := headers.NewHeaders(nil, []string{"costCentre"})
	if err != nil {
		t.Fatal(err)
	}
	core, lines := observer.New(zapcore.WarnLevel)
	property := func(name string) json.RawMessage {
		return json.RawMessage(`{"request_response_rmt":{"properties":{"` + name + `":{"equals":"research"}}}}`)
	}
	m := newBudgets(t, []*Budget{
		{Name: "filter", Limit: "5", Filter: property("team")},
		{Name: "per", Limit: "5", Per: "property.cost-centre"},
		{Name: "canonical", Limit: "5", Filter: property("Team"), Per: "property.Cost-Unit"},
		{Name: "named", Limit: "5", Per: "property.costCentre"},
		{Name: "named otherwise", Limit: "5", Per: "property.Costcentre"},
		{Name: "none", Limit: "5", Per: "user"},
	}...)
	m.Logger = zap.New(core)
	m.CheckProperties(spelled)
	spellings := map[string]string{"filter": "Team", "per": "Cost-Centre", "named otherwise": "costCentre"}
	for _, line := range lines.All() {
		fields := line.ContextMap()
		budget, _ := fields["budget"].(string)
		want := spellings[budget]
		if want == "" || !strings.Contains(line.Message, "write property."+want+",") || !strings.Contains(line.Message, "property_names "+fields["property"].(string)) {
			t.Errorf("%s is warned of: %s", budget, line.Message)
		}
		delete(spellings, budget)
	}
	for budget := range spellings {
		t.Errorf("nothing is said of %s", budget)
	}
}
