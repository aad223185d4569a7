//go:build linux

package durability

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// administrator is the key that administers the organisation of TestControlKill.
const administrator = "administrator-key"

// controlled is a kind of objects that administrators change.
type controlled struct {
	create, body string // where one is created, and of what
	list         string
	// item leads to one, by its id or its name. changes can follow each other, the last ends it.
	item    string
	changes []change
	// shows are the fields that the changes change.
	shows string
}

// change is one change of an object. In its path and its body, $name is a new name, $odd and
// $role change with every change.
type change struct{ method, path, body string }

var controlledKinds = []controlled{
	{
		create: "/v1/keys", body: `{"name":"$name","scopes":["gateway"]}`, list: "/v1/keys?limit=200", item: "/v1/keys/$id",
		changes: []change{{"PATCH", "", `{"name":"$name","disabled":$odd}`}, {"POST", "/rotate", `{"overlap_seconds":0}`}, {"DELETE", "", ""}},
		shows:   "[name,disabled,secrets.#.last4]",
	}, {
		create: "/v1/budgets", body: `{"name":"$name","limit":"1"}`, list: "/v1/budgets?limit=200&values=1", item: "/v1/budgets/$name",
		changes: []change{{"PATCH", "", `{"limit":"$number"}`}, {"DELETE", "", ""}},
		shows:   "[name,limit]",
	}, {
		create: "/v1/organization/projects", body: `{"name":"$name"}`, list: "/v1/organization/projects?limit=100", item: "/v1/organization/projects/$id",
		changes: []change{{"POST", "", `{"name":"$name"}`}, {"POST", "/archive", ""}},
		shows:   "[name]",
	}, {
		create: "/v1/organization/invites", body: `{"email":"$name@example.com","role":"reader"}`, list: "/v1/organization/users?limit=100", item: "/v1/organization/users/$id",
		changes: []change{{"POST", "", `{"role":"$role"}`}, {"DELETE", "", ""}},
		shows:   "[email,role]",
	},
}

// administered is an object as its administrator knows it.
type administered struct {
	kind     *controlled
	id, name string
	secret   string // of a key, "" if it is not known
	view     string // what the last acknowledged change showed, "" once it is ended
	changes  int    // that were acknowledged
	pending  bool   // whether one more had no answer
}

// TestControlKill kills the process while administrators change keys, budgets, projects and
// members. What was acknowledged is whole. What had no answer is whole or absent. The audit log
// has one event of each change that is there, and no other.
func TestControlKill(t *testing.T) {
	t.Parallel()
	w := newWeir(t, newProvider(t))
	c := config{site: "llm_gateway\nllm_control", llm: "provider echo\norg administered {\nkey " + administrator + " admin\n}"}
	var all []*administered
	created := 0 // creations that had no answer
	for round := range rounds(1, killings()) {
		w.start(c)
		var mu sync.Mutex
		var killed atomic.Bool
		var group sync.WaitGroup
		for n := range 2 * len(controlledKinds) {
			group.Go(func() {
				for life := 0; !killed.Load(); life++ {
					o := &administered{kind: &controlledKinds[n%len(controlledKinds)], name: fmt.Sprintf("r%dn%dl%d", round, n, life)}
					err := w.administer(o)
					mu.Lock()
					if o.id != "" {
						all = append(all, o)
					} else {
						created++
					}
					mu.Unlock()
					if err != nil && !killed.Load() {
						t.Errorf("%s: %v", o.name, err)
						return
					}
				}
			})
		}
		time.Sleep(50*time.Millisecond + rand.N(300*time.Millisecond))
		killed.Store(true)
		w.kill()
		group.Wait()
		w.start(c)
		w.checkControlled(all)
		w.kill()
	}
	w.start(c)
	listed, events := w.checkControlled(all)
	if unknown := len(events) - len(all); unknown > created {
		t.Errorf("%d objects that nobody knows were created, and %d creations had no answer", unknown, created)
	}
	changes := 0
	for _, list := range events {
		changes += len(list)
	}
	t.Logf("%d objects are known, %d have events, %d are listed, after %d changes", len(all), len(events), len(listed), changes)
}

// administer creates an object, changes it a few times and ends it.
func (w *weir) administer(o *administered) error {
	kind := o.kind
	answer, err := w.controls("POST", kind.create, o.fill(kind.body))
	if err != nil {
		return err
	}
	o.acknowledge(answer)
	for err == nil && o.view != "" {
		next := kind.changes[rand.N(len(kind.changes))]
		if o.changes < 3 {
			next = kind.changes[rand.N(len(kind.changes)-1)]
		}
		path := strings.NewReplacer("$id", o.id, "$name", o.name).Replace(kind.item) + next.path
		o.pending = true
		answer, err = w.controls(next.method, path, o.fill(next.body))
		switch {
		case err != nil:
		case next == kind.changes[len(kind.changes)-1]:
			o.view, o.pending, o.changes = "", false, o.changes+1
		default:
			o.acknowledge(answer)
		}
	}
	return err
}

// fill makes the body of the object's next change.
func (o *administered) fill(body string) string {
	role, name := "reader", o.name
	if o.changes%2 == 1 {
		role = "member"
	}
	if o.changes > 0 {
		name += "c" + strconv.Itoa(o.changes)
	}
	return strings.NewReplacer("$name", name, "$odd", strconv.FormatBool(o.changes%2 == 1), "$role", role, "$number", strconv.Itoa(o.changes+1)).Replace(body)
}

// acknowledge notes what the answer to a change shows.
func (o *administered) acknowledge(answer gjson.Result) {
	if o.id == "" {
		o.id = strings.Replace(answer.Get("id").Str, "invite-", "user_", 1)
	}
	if secret := answer.Get("secret").Str; secret != "" {
		o.secret = secret
	}
	o.view, o.pending, o.changes = answer.Get(o.kind.shows).Raw, false, o.changes+1
}

// controls makes a request as the administrator, and returns what the answer shows.
func (w *weir) controls(method, path, body string) (gjson.Result, error) {
	r, err := http.NewRequest(method, "http://"+w.site+path, strings.NewReader(body))
	if err != nil {
		return gjson.Result{}, err
	}
	r.Header.Set("Authorization", "Bearer "+administrator)
	text, err := exchange(r)
	answer := gjson.ParseBytes(text)
	if data := answer.Get("data"); data.IsObject() {
		answer = data
	}
	return answer, err
}

// pages reads all pages of a list.
func (w *weir) pages(path, from string) (all []gjson.Result) {
	w.t.Helper()
	for next := ""; ; {
		answer, err := w.controls("GET", path+next, "")
		if err != nil {
			w.t.Fatal(err)
		}
		items := answer.Get("items")
		if !items.Exists() {
			items = answer.Get("data")
		}
		all = append(all, items.Array()...)
		switch {
		case answer.Get("next").Str != "":
			next = "&" + from + "=" + answer.Get("next").Str
		case answer.Get("has_more").Bool():
			next = "&" + from + "=" + answer.Get("last_id").Str
		default:
			return all
		}
	}
}

// checkControlled holds objects against the lists and the audit log, whose events it returns by
// the object's id. What had no answer is known afterwards.
func (w *weir) checkControlled(objects []*administered) (listed map[string]string, events map[string][]gjson.Result) {
	w.t.Helper()
	listed, events = map[string]string{}, map[string][]gjson.Result{}
	for _, kind := range controlledKinds {
		for _, item := range w.pages(kind.list, "after") {
			listed[item.Get("id").Str] = item.Get(kind.shows).Raw
		}
	}
	for _, e := range w.pages("/v1/audit?limit=200", "before") {
		events[e.Get("object").Str] = append(events[e.Get("object").Str], e)
	}
	for id, list := range events { // the newest first
		for i, e := range list {
			if i == len(list)-1 && e.Get("before").Type != gjson.Null || i < len(list)-1 && e.Get("before").Raw != list[i+1].Get("after").Raw {
				w.t.Errorf("%s changes from %s, which the event before does not say", id, e.Get("before").Raw)
			}
		}
		action := list[0].Get("action").Str
		if ended := strings.HasSuffix(action, ".deleted") || strings.HasSuffix(action, ".archived"); ended == (listed[id] != "") {
			w.t.Errorf("%s was %s last, and is listed as %q", id, action, listed[id])
		}
	}
	for id, view := range listed {
		if len(events[id]) == 0 {
			w.t.Errorf("%s, %s, has no event", id, view)
		}
	}
	for _, o := range objects {
		n := len(events[o.id])
		happened := o.pending && n == o.changes+1
		switch view := listed[o.id]; {
		case n != o.changes && !happened:
			w.t.Errorf("%s has %d events, and %d changes were acknowledged", o.id, n, o.changes)
		case happened == (view == o.view):
			w.t.Errorf("%s is %q, and was %q after %d changes; it has %d events", o.id, view, o.view, o.changes, n)
		}
		if happened {
			o.secret = "" // which it may have lost
		}
		o.view, o.changes, o.pending = listed[o.id], n, false
		if o.secret == "" {
			continue
		}
		status, answer := w.as(w.t, o.secret, "GET", "/v1/key", "")
		if opens := o.view != "" && !strings.Contains(o.view, "true"); opens != (status == http.StatusOK) {
			w.t.Errorf("the key %s is %q, and answers %d %s", o.id, o.view, status, answer)
		}
	}
	return listed, events
}
