package money

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/credits"
	_ "github.com/weirhq/weir/storage/sqlite"
)

// withStore is newBudgets with a store.
func withStore(t *testing.T, budgets ...*Budget) (*Budgets, *stores.Store) {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	t.Cleanup(cancel)
	config := &stores.Config{StorageRaw: fmt.Appendf(nil, `{"backend":"sqlite","path":%q}`, t.TempDir()+"/weir.db")}
	if err := config.Provision(ctx, stores.DefaultName, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(config.Release)
	if err := config.Start(); err != nil {
		t.Fatal(err)
	}
	m := newBudgets(t, budgets...)
	m.stores = map[string]*stores.Config{stores.DefaultName: config}
	return m, config.Store()
}

func ledgerOf(t *testing.T, m *Budgets) credits.Ledger {
	t.Helper()
	ledger, err := m.Ledger(stores.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	return ledger
}

// A budget that is made, changed or deleted while Weir runs is in force with the next call. One
// of the configuration takes the place of another of its name. Nothing is read again while
// nothing changes, and a budget that cannot be read stops the calls of its organisation alone.
func TestCreatedBudgets(t *testing.T) {
	m, store := withStore(t, &Budget{Name: "fixed", Limit: "7"})
	want := func(want string) []*Budget {
		t.Helper()
		all, err := m.Of(stores.DefaultName)
		got := ""
		for _, b := range all {
			got += b.Name + " " + b.Limit + ";"
		}
		if err != nil || got != want {
			t.Errorf("the budgets are %s, %v; want %s", got, err, want)
		}
		return all
	}
	want("fixed 7;")
	log, err := store.Control()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]*control.Object)
	set := func(org, name, budget string) {
		t.Helper()
		e := control.Event{ID: "evt_" + name + budget, Action: "rule.updated", Object: "rule_" + name, Before: values[name]}
		if budget != "" {
			text, err := json.Marshal(&control.Rule{ID: e.Object, Org: org, Name: name, Budget: json.RawMessage(budget)})
			if err != nil {
				t.Fatal(err)
			}
			e.After = &control.Object{ID: e.Object, Kind: control.KindRule, Name: name, Value: text}
		}
		values[name] = e.After
		if err := log.Commit(t.Context(), org, []control.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	set(stores.DefaultName, "a", `{"name":"a","limit":"1","stages":[{"at":50}]}`)
	before := want("fixed 7;a 1;")
	set(stores.DefaultName, "b", `{"name":"b","limit":"2","quantity":"requests","window":"1h"}`)
	if after := want("fixed 7;a 1;b 2;"); after[1] != before[1] {
		t.Error("a budget that did not change was read again, and forgets what it told")
	}
	set(stores.DefaultName, "fixed", `{"name":"fixed","limit":"9"}`)
	set(stores.DefaultName, "a", `{"name":"a","limit":"3"}`)
	want("fixed 7;a 3;b 2;")
	set(stores.DefaultName, "b", `{"name":"b","limit":"4","reserve":"expected"}`) // as 0.1.0 made it
	want("fixed 7;a 3;b 4;")
	set(stores.DefaultName, "b", "")
	want("fixed 7;a 3;")
	if n := testing.AllocsPerRun(100, func() { _, _ = m.Of(stores.DefaultName) }); n > 0 {
		t.Errorf("a look at the budgets costs %v allocations", n)
	}
	teller := &Bill{budgets: m, ledger: ledgerOf(t, m)}
	for _, amount := range []plugins.Nanodollars{1e9, 2e9, 25e8} { // of 3 dollars, with a stage at half of them
		b := &Budget{Name: "staged", Limit: "3", Window: "total", Stages: []*Stage{{At: 50}}}
		if err := b.provision(stores.DefaultName, func(string) bool { return false }); err != nil {
			t.Fatal(err)
		}
		teller.bounding = budgetHolds{{budget: b, hold: b.hold(new(storage.Record), 0)}}
		part := &share{quantity: dollars, Reservation: credits.Reservation{ID: uuid.New(), Org: stores.DefaultName, Holds: []credits.Hold{teller.bounding[0].hold}}}
		part.Holds[0].Limit = 10e9
		if err := errors.Join(teller.ledger.Reserve(t.Context(), part.Reservation), teller.charge(t.Context(), part, amount)); err != nil {
			t.Fatal(err)
		}
	}
	events, err := log.Events(t.Context(), stores.DefaultName, "staged", "", 10)
	if err != nil || len(events) != 1 || events[0].Action != "budget.reached" || gjson.GetBytes(events[0].After.Value, "spent").Raw != "3" {
		t.Errorf("the audit log has %+v, %v", events, err)
	}
	set("acme", "c", `{"name":"c","limit":"many"}`)
	if all, err := m.Of("acme"); err == nil || !strings.Contains(err.Error(), "rule_c") {
		t.Errorf("a budget that cannot be read: %v, %v", all, err)
	}
	want("fixed 7;a 3;")
}
