// Package controltest tests logs of control objects.
package controltest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/storage/control"
)

// Place is where one log is kept.
type Place struct {
	// Open opens the log.
	Open func() (control.Log, error)
}

// Run checks a kind of log. place makes a new, empty one.
func Run(t *testing.T, place func(testing.TB) Place) {
	for name, test := range map[string]func(*testing.T, control.Log){
		"all events or none":            testAllOrNone,
		"a name belongs to one object":  testNames,
		"organisations are apart":       testTenants,
		"changes at once are all there": testConcurrent,
		"rules at once fill it once":    testRulesAtOnce,
		"a page begins somewhere":       testPlaces,
		"use may be noted of nothing":   testUsed,
		"what happened changes nothing": testTold,
		"a change may have no event":    testAmended,
		"a lease has one node":          testLease,
	} {
		t.Run(name, func(t *testing.T) {
			log, err := place(t).Open()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = log.Close(context.Background()) })
			test(t, log)
		})
	}
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("random changes ", seed), func(t *testing.T) {
			testRandom(t, place(t), rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

// event makes an event. The event's object has its lists and secrets.
func event(before, after *control.Object) control.Event {
	e := control.Event{ID: fmt.Sprintf("evt_%x", rand.Uint64()), Before: before, After: after, Action: "rule.changed"}
	e.Object = e.Subject().ID
	return e
}

func object(kind control.Kind, id, name, value string) *control.Object {
	return &control.Object{ID: id, Kind: kind, Name: name, Value: fmt.Appendf(nil, `{"value":%q}`, value)}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t testing.TB, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("%v, want %v", err, kind)
	}
}

func testAllOrNone(t *testing.T, log control.Log) {
	ctx := t.Context()
	first := object(control.KindRule, "rule_1", "one", "a")
	must(t, log.Commit(ctx, "acme", []control.Event{event(nil, first)}))
	second, stale := object(control.KindRule, "rule_2", "two", "a"), object(control.KindRule, "rule_1", "one", "other")
	before := log.Version()
	want(t, log.Commit(ctx, "acme", []control.Event{event(nil, second), event(stale, nil)}), control.ErrChanged)
	want(t, log.Commit(ctx, "acme", []control.Event{event(nil, second)}, *stale), control.ErrChanged)
	want(t, log.Commit(ctx, "acme", []control.Event{event(nil, second), event(nil, object(control.KindRule, "rule_3", "one", ""))}), control.ErrTaken)
	if _, err := log.Get(ctx, "acme", control.KindRule, "rule_2"); !errors.Is(err, control.ErrNotFound) || log.Version() != before {
		t.Fatalf("a part of a change is there: %v, version %d after %d", err, log.Version(), before)
	}
	must(t, log.Commit(ctx, "acme", []control.Event{event(nil, second)}, *first))
	want(t, log.Commit(ctx, "acme", []control.Event{event(first, nil), event(first, nil)}), control.ErrChanged)
	events, err := log.Events(ctx, "acme", "", "", 10)
	if err != nil || len(events) != 2 || events[0].Object != "rule_2" || log.Version() == before {
		t.Fatal(events, err)
	}
}

func testNames(t *testing.T, log control.Log) {
	ctx := t.Context()
	one := object(control.KindProject, "proj_1", "search", "a")
	must(t, log.Commit(ctx, "acme", []control.Event{event(nil, one)}))
	must(t, log.Commit(ctx, "acme", []control.Event{event(nil, object(control.KindRule, "rule_1", "search", "a"))}))
	must(t, log.Commit(ctx, "globex", []control.Event{event(nil, object(control.KindProject, "proj_2", "search", "a"))}))
	want(t, log.Commit(ctx, "acme", []control.Event{event(nil, object(control.KindProject, "proj_3", "search", "a"))}), control.ErrTaken)
	renamed := object(control.KindProject, "proj_1", "find", "b")
	must(t, log.Commit(ctx, "acme", []control.Event{event(one, renamed)}))
	_, err := log.Named(ctx, "acme", control.KindProject, "search")
	want(t, err, control.ErrNotFound)
	_, err = log.Named(ctx, "acme", control.KindProject, "")
	want(t, err, control.ErrNotFound)
	found, err := log.Named(ctx, "acme", control.KindProject, "find")
	if err != nil || !found.Equal(*renamed) {
		t.Fatal(found, err)
	}
	must(t, log.Commit(ctx, "acme", []control.Event{event(nil, object(control.KindProject, "proj_3", "search", "a")), event(renamed, nil)}))
	must(t, log.Commit(ctx, "acme", []control.Event{event(nil, object(control.KindProject, "proj_4", "find", "a"))}))
}

func testTenants(t *testing.T, log control.Log) {
	ctx := t.Context()
	one := object(control.KindKey, "key_1", "", "a")
	one.Hashes, one.Lists = []control.Hash{sha256.Sum256([]byte("secret"))}, []control.List{"project/x"}
	must(t, log.Commit(ctx, "acme", []control.Event{event(nil, one)}))
	_, err := log.Get(ctx, "globex", control.KindKey, "key_1")
	want(t, err, control.ErrNotFound)
	_, err = log.Get(ctx, "acme", control.KindRule, "key_1")
	want(t, err, control.ErrNotFound)
	want(t, log.Commit(ctx, "globex", []control.Event{event(one, nil)}), control.ErrChanged)
	want(t, log.Commit(ctx, "globex", []control.Event{event(one, object(control.KindKey, "key_1", "", "b"))}), control.ErrChanged)
	want(t, log.Commit(ctx, "globex", nil, *one), control.ErrChanged)
	for _, p := range []control.Page{{}, {List: "project/x"}} {
		if page, err := log.List(ctx, "globex", control.KindKey, p); err != nil || len(page) != 0 {
			t.Fatal(page, err)
		}
	}
	if events, err := log.Events(ctx, "globex", "", "", 10); err != nil || len(events) != 0 {
		t.Fatal(events, err)
	}
	if found, err := log.Find(ctx, one.Hashes[0]); err != nil || !found.Equal(*one) {
		t.Fatal(found, err)
	}
}

func testConcurrent(t *testing.T, log control.Log) {
	ctx := t.Context()
	o := &control.Organisation{Log: log, Name: "acme"}
	p, err := o.CreateProject(ctx, "search")
	must(t, err)
	const workers, each = 8, 10
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for range each {
				if _, err := o.UpdateProject(ctx, p.ID, func(p *control.Project) error {
					p.Name += "+"
					return nil
				}); err != nil {
					t.Error(err)
				}
				if _, _, err := o.CreateKey(ctx, control.Settings{Project: "other"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if p, err = control.Named[control.Project](ctx, o, "search"); err != nil || len(p.Name) != len("search")+workers*each {
		t.Fatal(p, err)
	}
	if keys, err := log.List(ctx, "acme", control.KindKey, control.Page{List: control.InProject("other")}); err != nil || len(keys) != workers*each {
		t.Fatal(len(keys), err)
	}
	if all, err := log.List(ctx, "acme", control.KindProject, control.Page{}); err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
}

// maxRules is how many rules an organisation may have.
const maxRules = 2000

func testRulesAtOnce(t *testing.T, log control.Log) {
	ctx := t.Context()
	o := &control.Organisation{Log: log, Name: "acme"}
	const free, creators = 10, 60
	rules := make([]control.RuleSettings, 0, maxRules)
	for n := range maxRules - free {
		rules = append(rules, control.RuleSettings{Name: fmt.Sprint("rule ", n), Budget: []byte(`{}`)})
	}
	must(t, o.SetRules(ctx, rules...))
	var count atomic.Int64
	var group sync.WaitGroup
	for n := range creators {
		group.Go(func() {
			switch err := o.SetRules(ctx, control.RuleSettings{Name: fmt.Sprint("one more ", n), Budget: []byte(`{}`)}); {
			case err == nil:
				count.Add(1)
			case !errors.Is(err, control.ErrFull):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if all, err := log.List(ctx, "acme", control.KindRule, control.Page{}); err != nil || len(all) != maxRules || count.Load() != free {
		t.Errorf("%d rules, %d were made at once, %v", len(all), count.Load(), err)
	}
}

func testPlaces(t *testing.T, log control.Log) {
	ctx := t.Context()
	must(t, log.Commit(ctx, "acme", []control.Event{event(nil, object(control.KindKey, "key_1", "", "a"))}))
	for _, after := range []string{"key_2", "acme"} {
		_, err := log.List(ctx, "acme", control.KindKey, control.Page{After: after})
		want(t, err, control.ErrNoPlace)
	}
	_, err := log.List(ctx, "globex", control.KindKey, control.Page{After: "key_1"})
	want(t, err, control.ErrNoPlace)
	_, err = log.List(ctx, "acme", control.KindRule, control.Page{After: "key_1"})
	want(t, err, control.ErrNoPlace)
	_, err = log.Events(ctx, "acme", "", "evt_none", 1)
	want(t, err, control.ErrNoPlace)
}

func testUsed(t *testing.T, log control.Log) {
	ctx := t.Context()
	must(t, log.Commit(ctx, "acme", []control.Event{event(nil, object(control.KindKey, "key_1", "", "a"))}))
	o, err := log.Get(ctx, "acme", control.KindKey, "key_1")
	if err != nil || o.UsedAt != nil {
		t.Fatal(o, err)
	}
	log.Used("key_1", 1000)
	log.Used("key_unknown", 1000)
	// It is known before it is written.
	if o, err = log.Get(ctx, "acme", control.KindKey, "key_1"); err != nil || o.UsedAt == nil || *o.UsedAt != 1000 {
		t.Fatal(o, err)
	}
	if all, err := log.List(ctx, "acme", control.KindKey, control.Page{}); err != nil || len(all) != 1 || all[0].UsedAt == nil || *all[0].UsedAt != 1000 {
		t.Fatal(all, err)
	}
}

func testTold(t *testing.T, log control.Log) {
	ctx := t.Context()
	one := object(control.KindRule, "rule_1", "one", "a")
	must(t, log.Commit(ctx, "acme", []control.Event{event(nil, one)}))
	o := &control.Organisation{Log: log, Name: "acme"}
	must(t, o.Tell(ctx, "budget.reached", control.Note{Object: "rule_1", Details: map[string]string{"at": "80%"}}))
	must(t, o.Tell(ctx, "budget.reached", control.Note{Object: "search", Details: map[string]string{"at": "80%"}}))
	if got, err := log.Get(ctx, "acme", control.KindRule, "rule_1"); err != nil || !got.Equal(*one) {
		t.Fatal(got, err)
	}
	if all, err := log.List(ctx, "acme", control.KindRule, control.Page{}); err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	events, err := log.Events(ctx, "acme", "rule_1", "", 10)
	if err != nil || len(events) != 2 || string(events[0].After.Value) != `{"at":"80%"}` {
		t.Fatal(events, err)
	}
	must(t, log.Commit(ctx, "acme", []control.Event{event(one, nil)}))
}

// testAmended changes an object without an event.
func testAmended(t *testing.T, log control.Log) {
	ctx := t.Context()
	one, changed := object(control.KindRule, "rule_1", "one", "a"), object(control.KindRule, "rule_1", "one", "b")
	must(t, log.Commit(ctx, "acme", []control.Event{event(nil, one)}))
	amended, before := event(one, changed), log.Version()
	amended.ID = ""
	must(t, log.Commit(ctx, "acme", []control.Event{amended}))
	want(t, log.Commit(ctx, "acme", []control.Event{amended}), control.ErrChanged)
	if got, err := log.Get(ctx, "acme", control.KindRule, "rule_1"); err != nil || !got.Equal(*changed) || log.Version() == before {
		t.Fatal(got, err)
	}
	if events, err := log.Events(ctx, "acme", "", "", 10); err != nil || len(events) != 1 {
		t.Fatal(events, err)
	}
}

// kinds are the kinds of random objects.
var kinds = []control.Kind{control.KindProject, control.KindServiceAccount, control.KindKey, control.KindMember, control.KindRule}

// testRandom compares a log with a plain list of objects, also when it is opened again.
func testRandom(t *testing.T, place Place, numbers *rand.Rand) {
	ctx := t.Context()
	log, err := place.Open()
	must(t, err)
	t.Cleanup(func() { _ = log.Close(context.Background()) })
	orgs := []string{"acme", "globex"}
	objects := make(map[string][]*control.Object) // by organisation, the oldest first
	events := make(map[string][]control.Event)
	next := 0
	draw := func(id string, kind control.Kind) *control.Object {
		next++
		o := object(kind, id, "", fmt.Sprint(next))
		if numbers.IntN(2) == 0 {
			o.Name = id // free for everybody else
		}
		for _, list := range []control.List{"project/one", "project/two", "scope/admin"} {
			if numbers.IntN(2) == 0 {
				o.Lists = append(o.Lists, list)
			}
		}
		for n := range numbers.IntN(3) {
			o.Hashes = append(o.Hashes, sha256.Sum256(fmt.Append(nil, next, n)))
		}
		return o
	}
	for step := range 120 {
		org := orgs[numbers.IntN(len(orgs))]
		all := objects[org]
		var changes []control.Event
		for range 1 + numbers.IntN(3) { // changes of one commit
			switch place := numbers.IntN(len(all) + 3); {
			case place >= len(all):
				o := draw(fmt.Sprint("id_", next), kinds[numbers.IntN(len(kinds))])
				all, changes = append(slices.Clone(all), o), append(changes, event(nil, o))
			case numbers.IntN(3) == 0:
				changes = append(changes, event(all[place], nil))
				all = slices.Delete(slices.Clone(all), place, place+1)
			default:
				o := draw(all[place].ID, all[place].Kind)
				changes = append(changes, event(all[place], o))
				all = slices.Clone(all)
				all[place] = o
			}
		}
		must(t, log.Commit(ctx, org, changes))
		objects[org], events[org] = all, append(events[org], changes...)
		if numbers.IntN(20) == 0 {
			must(t, log.Close(ctx))
			log, err = place.Open()
			must(t, err)
		}
		if step%10 == 0 {
			for _, org := range orgs {
				check(t, log, org, objects[org], events[org], numbers)
			}
		}
	}
}

// check reads all of an organisation, in pages of a few.
func check(t *testing.T, log control.Log, org string, objects []*control.Object, events []control.Event, numbers *rand.Rand) {
	t.Helper()
	ctx := t.Context()
	for _, kind := range kinds {
		for _, list := range []control.List{"", "project/one", "project/two", "scope/admin", "scope/none"} {
			p := control.Page{List: list, NewestFirst: numbers.IntN(2) == 0, Limit: numbers.IntN(4)}
			var expected, got []string
			for _, o := range objects {
				if o.Kind == kind && (list == "" || slices.Contains(o.Lists, list)) {
					expected = append(expected, o.ID+string(o.Value))
				}
			}
			if p.NewestFirst {
				slices.Reverse(expected)
			}
			for {
				page, err := log.List(ctx, org, kind, p)
				must(t, err)
				for _, o := range page {
					got, p.After = append(got, o.ID+string(o.Value)), o.ID
				}
				if p.Limit > 0 && len(page) > p.Limit {
					t.Fatalf("a page of %d has %d", p.Limit, len(page))
				}
				if len(page) == 0 || p.Limit == 0 {
					break
				}
			}
			if !slices.Equal(got, expected) {
				t.Fatalf("%s %s of %s: %v, want %v", kind, list, org, got, expected)
			}
		}
	}
	for _, o := range objects {
		got, err := log.Get(ctx, org, o.Kind, o.ID)
		if err != nil || !got.Equal(*o) {
			t.Fatal(got, o, err)
		}
		for _, hash := range o.Hashes {
			if got, err := log.Find(ctx, hash); err != nil || !got.Equal(*o) {
				t.Fatal(got, o, err)
			}
		}
	}
	var got []control.Event
	for before := ""; ; {
		page, err := log.Events(ctx, org, "", before, 7)
		must(t, err)
		if len(page) == 0 {
			break
		}
		got, before = append(got, page...), page[len(page)-1].ID
	}
	slices.Reverse(got)
	if g, e := text(t, got), text(t, events); g != e {
		t.Fatalf("events %s, want %s", g, e)
	}
	for _, e := range events { // also of objects and secrets that are gone
		if e.Before == nil {
			continue
		}
		gone := !slices.ContainsFunc(objects, func(o *control.Object) bool { return o.ID == e.Object })
		if _, err := log.Get(ctx, org, e.Before.Kind, e.Object); gone != errors.Is(err, control.ErrNotFound) {
			t.Fatal(e.Object, err)
		}
		for _, hash := range e.Before.Hashes {
			_, err := log.Find(ctx, hash)
			want(t, err, control.ErrNotFound)
		}
		about, err := log.Events(ctx, org, e.Object, "", 1000)
		must(t, err)
		for _, a := range about {
			if a.Object != e.Object {
				t.Fatalf("an event about %s is %+v", e.Object, a)
			}
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return string(text)
}

// testLease checks that of nodes that want a lease at the same time one has it until its end, and that no
// administrator reads of it.
func testLease(t *testing.T, log control.Log) {
	of := &control.Organisation{Log: log, Name: "a"}
	var wg sync.WaitGroup
	var leased [8]bool
	for i := range leased {
		wg.Go(func() {
			var err error
			if leased[i], err = of.Lease(t.Context(), "work", fmt.Sprint(i), time.Hour); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	first := slices.Index(leased[:], true)
	if first < 0 || slices.Contains(leased[first+1:], true) {
		t.Fatalf("the nodes have the lease: %v", leased)
	}
	want := func(org, name, node string, life time.Duration, want bool) {
		t.Helper()
		if got, err := (&control.Organisation{Log: log, Name: org}).Lease(t.Context(), name, node, life); err != nil || got != want {
			t.Errorf("%s %s of %s: %v, %v", org, name, node, got, err)
		}
	}
	node := fmt.Sprint(first)
	want("a", "other work", "other", time.Hour, true)
	want("b", "work", "other", time.Hour, true)
	want("a", "work", node, -time.Second, true) // its life is over
	want("a", "work", "other", time.Hour, true)
	want("a", "work", node, time.Hour, false)
	if events, err := log.Events(t.Context(), "a", "", "", 10); err != nil || len(events) > 0 {
		t.Errorf("the events are %v, %v", events, err)
	}
}
