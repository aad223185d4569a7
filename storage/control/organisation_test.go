package control_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
	. "github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/control/embedded"
)

func acme(t *testing.T) *Organisation {
	t.Helper()
	log, err := embedded.Open(t.TempDir(), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close(context.Background()) })
	return &Organisation{Log: log, Name: "acme", By: Actor{Key: "key_admin", Address: "192.0.2.1"}}
}

func hashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

func TestOpens(t *testing.T) {
	ctx, o := t.Context(), acme(t)
	now := storage.Millis(time.Now())
	k, first, err := o.CreateKey(ctx, Settings{})
	if err != nil || !k.Opens(hashOf(first), now) || k.Opens(hashOf("other"), now) {
		t.Fatal(k, err)
	}
	k, second, err := o.RotateKey(ctx, k.ID, time.Hour)
	if err != nil || !k.Opens(hashOf(first), now) || !k.Opens(hashOf(second), now) || k.Opens(hashOf(first), now+3700_000) || !k.Opens(hashOf(second), now+3700_000) {
		t.Fatal(k, err)
	}
	ends := now + 1000
	k, err = o.UpdateKey(ctx, k.ID, func(s *Settings) error {
		s.ExpiresAt = &ends
		return nil
	})
	if err != nil || !k.Opens(hashOf(second), now) || k.Opens(hashOf(second), ends) {
		t.Fatal(k, err)
	}
	k, err = o.UpdateKey(ctx, k.ID, func(s *Settings) error {
		s.Disabled = true
		return nil
	})
	if err != nil || k.Opens(hashOf(second), now) {
		t.Fatal(k, err)
	}
}

// A key has the project that it names, which is made or found, and which ends it.
func TestProjectOfAKey(t *testing.T) {
	ctx, o := t.Context(), acme(t)
	k, secret, err := o.CreateKey(ctx, Settings{Project: "search"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Named[Project](ctx, o, "search")
	if err != nil || p.Name != "search" || p.ArchivedAt != nil {
		t.Fatal(p, err)
	}
	if _, err := o.CreateProject(ctx, "search"); !errors.Is(err, ErrTaken) {
		t.Error("there are two projects of one name:", err)
	}
	if _, _, err := o.CreateKey(ctx, Settings{Project: "search"}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.UpdateProject(ctx, p.ID, func(p *Project) error {
		p.Name = "find"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if found, of, err := FindKey(ctx, o.Log, hashOf(secret)); err != nil || found.ID != k.ID || of.ID != p.ID || of.Name != "find" || of.Label != "search" {
		t.Fatal(found, of, err)
	}
	if _, err := o.ArchiveProject(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.CreateKey(ctx, Settings{Project: "search"}); !errors.Is(err, ErrArchived) {
		t.Error("an archived project has a new key:", err)
	}
	other, _, err := o.CreateKey(ctx, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.UpdateKey(ctx, other.ID, func(s *Settings) error {
		s.Project = "search"
		return nil
	}); !errors.Is(err, ErrArchived) {
		t.Error("a key has moved into an archived project:", err)
	}
	if _, of, err := FindKey(ctx, o.Log, hashOf(secret)); err != nil || of.ArchivedAt == nil {
		t.Error(of, err)
	}
	events, err := o.Log.Events(ctx, "acme", p.ID, "", 10)
	if err != nil || len(events) != 3 || events[2].Action != "project.created" || events[1].Action != "project.updated" || events[0].Action != "project.archived" {
		t.Error(events, err)
	}
}

// An owner takes its keys with it, and no other's.
func TestOwners(t *testing.T) {
	ctx, o := t.Context(), acme(t)
	a, first, secret, err := o.CreateServiceAccount(ctx, "search", "crawler", &Settings{Name: "first"})
	if err != nil || first.OwnerID != a.ID || first.Project != "search" {
		t.Fatal(a, first, err)
	}
	second, _, err := o.CreateKey(ctx, Settings{Name: "second", OwnerID: a.ID, Project: "elsewhere"})
	if err != nil || second.Project != "search" {
		t.Fatal("the key of a service account is not in its project:", second, err)
	}
	m, err := o.AddMember(ctx, Member{Email: "Ada@Example.com", Role: Owner})
	if err != nil || m.Email != "ada@example.com" {
		t.Fatal(m, err)
	}
	if _, err := o.AddMember(ctx, Member{Email: "ada@example.com", Role: Owner}); !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
	adas, _, err := o.CreateKey(ctx, Settings{OwnerID: m.ID})
	if err != nil {
		t.Fatal(err)
	}
	other := &Organisation{Log: o.Log, Name: "globex"}
	if err := DeleteOwner[ServiceAccount](ctx, other, a.ID); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, _, err := other.CreateKey(ctx, Settings{OwnerID: a.ID}); !errors.Is(err, ErrNotFound) {
		t.Error("a key has an owner of another organisation:", err)
	}
	if err := DeleteOwner[ServiceAccount](ctx, o, a.ID); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{first.ID, second.ID} {
		if _, err := Get[Key](ctx, o, id); !errors.Is(err, ErrNotFound) {
			t.Error(id, err)
		}
	}
	if _, _, err := FindKey(ctx, o.Log, hashOf(secret)); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := Get[Key](ctx, o, adas.ID); err != nil {
		t.Error(err)
	}
	if _, _, err := o.CreateKey(ctx, Settings{OwnerID: a.ID}); !errors.Is(err, ErrNotFound) {
		t.Error("an owner that is gone has a new key:", err)
	}
	if err := DeleteOwner[Member](ctx, o, m.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := Get[Key](ctx, o, adas.ID); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// A key has no owner that it owns, even by other keys, and even if two administrators say so at once.
func TestNoKeyOwnsItself(t *testing.T) {
	ctx, o := t.Context(), acme(t)
	var ids []string
	for range 3 {
		k, _, err := o.CreateKey(ctx, Settings{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, k.ID)
	}
	own := func(key, owner string) error {
		_, err := o.UpdateKey(ctx, key, func(s *Settings) error { s.OwnerID = owner; return nil })
		return err
	}
	a, b, c := ids[0], ids[1], ids[2]
	if err := errors.Join(own(a, b), own(b, c)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{b, c} {
		if err := own(key, a); !errors.Is(err, ErrOwnsItself) {
			t.Errorf("key %d is owned by a key that it owns: %v", slices.Index(ids, key), err)
		}
	}
	if err := own(a, a); !errors.Is(err, ErrOwnsItself) {
		t.Error("a key owns itself:", err)
	}
	if err := errors.Join(own(b, ""), own(a, c)); err != nil {
		t.Error(err)
	}
	// While a's owner b is found to have the owner c, c gets the owner a.
	if err := errors.Join(own(a, ""), own(b, c)); err != nil {
		t.Fatal(err)
	}
	o.Log = &meanwhile{Log: o.Log, do: func() {
		other := &Organisation{Log: o.Log.(*meanwhile).Log, Name: o.Name}
		if _, err := other.UpdateKey(ctx, c, func(s *Settings) error { s.OwnerID = a; return nil }); err != nil {
			t.Error(err)
		}
	}}
	if err := own(a, b); !errors.Is(err, ErrOwnsItself) {
		t.Error("two changes at once made a key own itself:", err)
	}
}

// meanwhile is a log in which somebody else does something before the first change.
type meanwhile struct {
	Log
	do func()
}

func (m *meanwhile) Commit(ctx context.Context, org string, events []Event, unchanged ...Object) error {
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return m.Log.Commit(ctx, org, events, unchanged...)
}

// Keys that own each other, as an older version let them, end together.
func TestKeysThatOwnEachOtherEnd(t *testing.T) {
	ctx, o := t.Context(), acme(t)
	var before []Object
	for range 4 {
		k, _, err := o.CreateKey(ctx, Settings{})
		if err != nil {
			t.Fatal(err)
		}
		object, err := o.Log.Get(ctx, o.Name, KindKey, k.ID)
		if err != nil {
			t.Fatal(err)
		}
		before = append(before, object)
	}
	for i, owner := range []int{1, 2, 0, 3} { // three in a circle, and one that owns itself
		after := before[i]
		after.Value, after.Lists = bytes.Replace(after.Value, []byte(`"scopes"`), fmt.Appendf(nil, `"owner_id":%q,"scopes"`, before[owner].ID), 1), []List{OwnedBy(before[owner].ID)}
		e := Event{ID: fmt.Sprint("evt_", i), Action: "key.updated", Object: after.ID, Before: &before[i], After: &after}
		if err := o.Log.Commit(ctx, o.Name, []Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := o.CreateKey(ctx, Settings{OwnerID: before[0].ID}); err != nil {
		t.Error(err)
	}
	for _, i := range []int{1, 3} {
		if err := DeleteOwner[Key](ctx, o, before[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := All[Key](ctx, o, Page{}); err != nil || len(left) > 0 {
		t.Errorf("%d keys are left, %v", len(left), err)
	}
}

func TestRules(t *testing.T) {
	ctx, o := t.Context(), acme(t)
	set := func(limit string, others ...RuleSettings) *Rule {
		t.Helper()
		rule := RuleSettings{Name: "month", Budget: json.RawMessage(`{"name":"month","limit":"` + limit + `"}`)}
		if err := o.SetRules(ctx, append(others, rule)...); err != nil {
			t.Fatal(err)
		}
		r, err := Named[Rule](ctx, o, "month")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := set("5", RuleSettings{Name: "none"}, RuleSettings{Name: "other", Budget: json.RawMessage(`{}`)})
	if second := set("6", RuleSettings{Name: "other"}); second.ID != first.ID {
		t.Fatal(second)
	}
	all, err := Rules(ctx, o.Log, "acme")
	if err != nil || len(all) != 1 || !strings.Contains(string(all[0].Budget), `"6"`) {
		t.Fatal(all, err)
	}
	events, err := o.Log.Events(ctx, "acme", first.ID, "", 10)
	if err != nil || len(events) != 2 || events[0].Action != "rule.updated" || !strings.Contains(string(events[0].Before.Value), `"5"`) {
		t.Fatal(events, err)
	}
	if err := Delete[Rule](ctx, o, first.ID); err != nil {
		t.Fatal(err)
	}
	if all, err := Rules(ctx, o.Log, "acme"); err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
}

// An organisation has no more rules, and no longer ones, than its calls can look at. Those that
// are there can be made fewer and shorter.
func TestRulesAreBounded(t *testing.T) {
	ctx, o := t.Context(), acme(t)
	rules := func(n, size int) (all []RuleSettings) {
		for i := range n {
			all = append(all, RuleSettings{Name: fmt.Sprint("rule ", i), Budget: json.RawMessage(`{"name":"` + strings.Repeat("a", size) + `"}`)})
		}
		return all
	}
	for _, c := range []struct {
		n, size int
		full    bool
	}{{2000, 1, false}, {2001, 1, true}, {100, 10_000, false}, {100, 30_000, true}, {2000, 1, false}} {
		if err := o.SetRules(ctx, rules(c.n, c.size)...); (err != nil) != c.full {
			t.Errorf("%d rules of %d bytes: %v", c.n, c.size, err)
		}
	}
	r, err := Named[Rule](ctx, o, "rule 7")
	if err != nil {
		t.Fatal(err)
	}
	grow := func(size int) error {
		_, err := Update(ctx, o, r.ID, func(r *Rule) error {
			r.Budget = json.RawMessage(`{"name":"` + strings.Repeat("a", size) + `"}`)
			return nil
		})
		return err
	}
	if long, short := grow(3<<20), grow(2); long == nil || short != nil {
		t.Error(long, short)
	}
	if err := Delete[Rule](ctx, o, r.ID); err != nil {
		t.Error(err)
	}
}

func TestAllow(t *testing.T) {
	accepts := func(yes bool) func([]string) bool { return func([]string) bool { return yes } }
	for _, c := range []struct {
		project *Project
		listed  bool
		want    bool
	}{
		{&Project{}, false, true},
		{&Project{Models: &ModelPermissions{Mode: AllowList}}, true, true},
		{&Project{Models: &ModelPermissions{Mode: AllowList}}, false, false},
		{&Project{Models: &ModelPermissions{Mode: DenyList}}, true, false},
		{&Project{Models: &ModelPermissions{Mode: DenyList}}, false, true},
	} {
		if got := c.project.Allow(accepts(c.listed)); got != c.want {
			t.Errorf("%+v, listed %v: %v", c.project, c.listed, got)
		}
	}
}

// An address is that of one person, in whichever letters it is written.
func TestEmail(t *testing.T) {
	for text, want := range map[string]string{
		"Ada.L+x@Example.com": "ada.l+x@example.com", "a@b": "a@b",
		"\u212aelvin@example.com": "", "ad\u0430@example.com": "", "Ada <ada@example.com>": "", "ada": "", "": "", "ada@example.com ": "", "a@b,c@d": "",
		strings.Repeat("a", 255) + "@b": "",
	} {
		if got, ok := Email(text); ok != (want != "") || ok && got != want {
			t.Errorf("%q is %q, %v", text, got, ok)
		}
	}
}

// A member is in the lists of projects, and joins once.
func TestMembers(t *testing.T) {
	ctx, o := t.Context(), acme(t)
	m := &Member{Email: "ada@example.com", Role: Reader}
	m.Join("search", Owner)
	m, err := o.AddMember(ctx, *m)
	if err != nil || m.JoinedAt != nil {
		t.Fatal(m, err)
	}
	in := func(label string) int {
		t.Helper()
		all, err := All[Member](ctx, o, Page{List: InProject(label)})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if in("search") != 1 || in("mail") != 0 {
		t.Fatal("the member is not in its project")
	}
	if m, err = Update(ctx, o, m.ID, func(m *Member) error {
		m.Join("mail", Contributor)
		m.Leave("search")
		return nil
	}); err != nil || in("search") != 0 || in("mail") != 1 || m.In("search") != nil || m.In("mail").Role != Contributor {
		t.Fatal(m, err)
	}
	for _, name := range []string{"Ada", "Eve"} {
		if err := o.MemberJoined(ctx, m.ID, name); err != nil {
			t.Fatal(err)
		}
	}
	events, err := o.Log.Events(ctx, "acme", m.ID, "", 10)
	if err != nil || len(events) != 3 || events[0].Action != "member.joined" {
		t.Fatal(events, err)
	}
	if joined, err := Named[Member](ctx, o, m.Email); err != nil || joined.JoinedAt == nil || joined.Name != "Ada" {
		t.Error(joined, err)
	}
}
