package money

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/credits"
	storejournal "github.com/weirhq/weir/storage/journal"
)

// A new budget begins with the sum of the records since a time, of each value, once, also if
// the process ended while they were charged. One without such a time begins at 0, and one that
// has counted before keeps what it counted.
func TestABudgetBeginsWithTheRecords(t *testing.T) {
	m, store := withStore(t)
	journal, err := store.Journal()
	if err != nil {
		t.Fatal(err)
	}
	since := time.Now().Add(-time.Hour)
	for i, project := range []string{"a", "a", "b", "other", "old"} {
		r := &storage.Record{Org: stores.DefaultName, ID: uuid.New(), Project: project, CreatedAt: storage.Millis(time.Now().Add(-time.Minute)), Cost: plugins.KnownCost(plugins.Nanodollars(10 + i))}
		if project == "old" {
			r.Project, r.CreatedAt = "a", storage.Millis(since.Add(-time.Minute))
		}
		if err := journal.Append(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	journal.Reconfigure(storejournal.Options{Scan: func(context.Context, string, func() error) error {
		return &plugins.Error{Status: 429, Message: "a budget begins although too many scans wait"}
	}})
	ledger := ledgerOf(t, m)
	begin := func(name, since string) (*Budget, string) {
		t.Helper()
		b := &Budget{Name: name, Limit: "1", Window: "total", Per: "project", Since: since}
		b.Filter = []byte(`{"request_response_rmt":{"project":{"not-equals":"other"}}}`)
		if err := b.provision(stores.DefaultName, func(string) bool { return false }); err != nil {
			t.Fatal(err)
		}
		if err := m.Begin(t.Context(), ledger, b); err != nil {
			t.Fatal(err)
		}
		counted, err := b.Counted(t.Context(), ledger)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, a := range counted {
			text += fmt.Sprintf("%s %d;", a.Value, a.Spent)
		}
		return b, text
	}
	at := since.Format(time.RFC3339)
	for range 2 { // the second time is after a restart
		if _, got := begin("new", at); got != "a 21;b 12;" {
			t.Errorf("the budget begins with %s", got)
		}
	}
	b, got := begin("from 0", "")
	if got != "" {
		t.Errorf("a budget without a time begins with %s", got)
	}
	if _, err := chargeOnce(t.Context(), ledger, 5, b.hold(&storage.Record{Project: "a"}, 1)); err != nil {
		t.Fatal(err)
	}
	if _, got := begin("from 0", at); got != "a 5;" {
		t.Errorf("a budget that is not new counts %s", got)
	}

	// The process ended after the first of the charges.
	half := &Budget{Name: "half", Limit: "1", Window: "total"}
	if err := half.provision(stores.DefaultName, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	first, began, charged, account := half.hold(nil, 1), half.hold(nil, 1), half.hold(nil, 1), half.hold(nil, 1)
	first.Budget += "\nsince first"
	began.Budget, began.Value, began.Limit = began.Budget+"\nsince time", storage.Millis(time.Now()).String(), 1000
	charged.Budget, charged.Value, account.Value, account.Limit = charged.Budget+"\nsince value", "a", "a", 1000
	for amount, holds := range map[plugins.Nanodollars][]credits.Hold{1: {first, began}, 21: {charged, account}} {
		if _, err := chargeOnce(t.Context(), ledger, amount, holds...); err != nil {
			t.Fatal(err)
		}
	}
	if _, got := begin("half", at); got != "a 21;b 12;" {
		t.Errorf("after a crash the budget begins with %s", got)
	}
}

func TestSinceNeedsWhatRecordsTell(t *testing.T) {
	for name, b := range map[string]*Budget{
		"records do not tell the user":  {Per: "user", Window: "total"},
		"records do not tell the model": {Per: "model", Window: "total", Trust: true},
		"in a window of the calendar":   {Window: "24h"},
		"is for US dollars":             {Quantity: "requests", Window: "day"},
		"since is a day":                {Window: "day", Since: "yesterday"},
	} {
		b.Name, b.Limit = "b", "1"
		if b.Since == "" {
			b.Since = "2026-11-01"
		}
		if err := b.provision(stores.DefaultName, func(string) bool { return false }); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v", b.Window, err)
		}
	}
	b := &Budget{Name: "b", Limit: "1", Window: "day", Since: "2026-11-01", Timezone: "Europe/Berlin", Per: "user", Trust: true}
	if err := b.provision(stores.DefaultName, func(string) bool { return false }); err != nil || b.since.Time().UTC().Hour() != 23 {
		t.Errorf("midnight in Berlin is %s, %v", b.since, err)
	}
}

// Recorded calls of keys that somebody created as their own count as their creator's, as calls do
// while they are made, also when such a key is deleted by now. A filter may name either.
func TestRecordedCallsOfOwnKeys(t *testing.T) {
	m, store := withStore(t)
	journal, err := store.Journal()
	if err != nil {
		t.Fatal(err)
	}
	log, err := store.Control()
	if err != nil {
		t.Fatal(err)
	}
	org := &control.Organisation{Log: log, Name: stores.DefaultName}
	parent, _, err := org.CreateKey(t.Context(), control.Settings{Name: "parent", Scopes: []string{"gateway"}})
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{parent.ID, "", ""}
	for i := range 2 {
		own, _, err := org.CreateOwnKey(t.Context(), control.Creator{ID: parent.ID}, control.Settings{Name: "own", Scopes: []string{"gateway"}}, 2)
		if err != nil {
			t.Fatal(err)
		}
		keys[1+i] = own.ID
	}
	if err := control.Delete[control.Key](t.Context(), org, keys[2]); err != nil {
		t.Fatal(err)
	}
	begin := storage.Millis(time.Now().Add(-time.Minute))
	for i, key := range append(keys, "key_stranger") {
		r := &storage.Record{
			Org: stores.DefaultName, ID: uuid.New(), KeyID: key, CreatedAt: begin + storage.Timestamp(i), GatewayNode: "n", TargetURL: "/v1",
			Cost: plugins.KnownCost(plugins.Nanodollars(10 + i)),
		}
		if err := journal.Append(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	const named = `{"request_response_rmt":{"key_id":{"%s":%q}}}`
	for _, test := range []struct {
		filter, want string
		refused      int64
		calls        int64
	}{
		{"", parent.ID + " 33;key_stranger 13;", 2, 4},
		{fmt.Sprintf(named, "equals", parent.ID), parent.ID + " 33;", 2, 3},
		{fmt.Sprintf(named, "equals", keys[2]), parent.ID + " 12;", 0, 1},
		{fmt.Sprintf(named, "not-equals", parent.ID), parent.ID + " 23;key_stranger 13;", 1, 3},
	} {
		b := &Budget{Name: "b" + test.filter, Limit: "1", Window: "total", Per: "key", Since: begin.String(), Filter: []byte(test.filter)}
		pace := &Budget{Name: "pace", Limit: "1", Quantity: "requests", Window: "24h", Per: "key", Filter: b.Filter}
		for _, b := range []*Budget{b, pace} {
			if err := b.provision(stores.DefaultName, func(string) bool { return false }); err != nil {
				t.Fatal(err)
			}
		}
		ledger := ledgerOf(t, m)
		if err := m.Begin(t.Context(), ledger, b); err != nil {
			t.Fatal(err)
		}
		counted, err := b.Counted(t.Context(), ledger)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, a := range counted {
			got += fmt.Sprintf("%s %d;", a.Value, a.Spent)
		}
		if got != test.want {
			t.Errorf("%s begins with %s, want %s", test.filter, got, test.want)
		}
		tried, err := m.Try(t.Context(), pace, begin, begin+1000, func(*Refusal) {})
		if err != nil || tried.Refused != test.refused || tried.Calls != test.calls {
			t.Errorf("%s: %+v, %v, want %d of %d calls refused", test.filter, tried, err, test.refused, test.calls)
		}
	}
}
