package routing

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/shared"
)

// chooser chooses among the accounts a, b, c and d, which serve all models of the test catalogue's
// provider alpha; d has the platform's credentials.
type chooser struct {
	t        *testing.T
	resolver *Resolver
	health   Health
	ask      Ask
}

func newChooser(t *testing.T, alias *Alias) *chooser {
	if err := alias.Check(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	var accounts []*providers.Account
	for i, label := range []string{"a", "b", "c", "d"} {
		account := &providers.Account{Label: label, Provider: "alpha", Platform: label == "d", API: needsKey{}}
		account.ID[0] = byte(i)
		accounts = append(accounts, account)
	}
	return &chooser{
		t: t, resolver: &Resolver{Catalog: parseCatalog(t), Accounts: accounts, Aliases: map[string]*Alias{"it": alias}},
		health: Health{new(shared.LocalBreakers), new(Loads)},
		ask:    Ask{Record: new(storage.Record), Tokens: 1000, Warm: nowhere},
	}
}

func (c *chooser) targets() []Target {
	targets, _, err := c.resolver.Resolve("it")
	if err != nil {
		c.t.Fatal(err)
	}
	return targets
}

// places returns the places of a call.
func (c *chooser) places() []Place {
	places, err := Choose(c.targets(), func() *Ask { return &c.ask }, c.health)
	if err != nil {
		c.t.Fatal(err)
	}
	return places
}

// order returns the names of the targets.
func (c *chooser) order() string {
	var names []string
	for _, p := range c.places() {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

// shares returns how often each target comes first.
func (c *chooser) shares(calls int) map[string]float64 {
	shares := make(map[string]float64)
	for range calls {
		shares[c.places()[0].Name] += 1 / float64(calls)
	}
	return shares
}

// circuit is that of a target by its name.
func (c *chooser) circuit(name string) shared.Key {
	for _, t := range c.targets() {
		if t.Name == name {
			return t.Circuit
		}
	}
	c.t.Fatalf("no target %s", name)
	return shared.Key{}
}

func (c *chooser) warm(name string, tokens int64) {
	c.ask.Warm = func(t Target) int64 {
		if t.Name == name {
			return tokens
		}
		return 0
	}
}

func choices(models ...string) []*Choice { return InTheirOrder(models...).Models }

// A choice by weight does not look at calls under way, and an explanation has them.
func TestExplanationHasCallsUnderWay(t *testing.T) {
	c := newChooser(t, &Alias{Strategy: ByWeight, Models: choices("a/big", "b/big")})
	c.health.Begin(c.circuit("a/big"))
	e := Explain("it", c.targets(), c.places(), c.health.Loads, func(Target) error { return nil })
	for _, target := range e.Targets {
		if want := map[string]int{"a/big": 1, "b/big": 0}[target.Target]; target.UnderWay != want {
			t.Errorf("%s: %d calls under way, want %d", target.Target, target.UnderWay, want)
		}
	}
}

// Calls return to a target when its limit is over, although none has been answered there since.
func TestLimitsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChooser(t, &Alias{Strategy: ByWeight, Models: choices("a/big", "b/big")})
		c.health.Limited(c.circuit("a/big"), 30*time.Second)
		c.health.Limited(c.circuit("b/big"), 10*time.Second)
		for _, want := range []struct {
			after time.Duration
			state map[string]State
		}{
			{0, map[string]State{"a/big": Limited, "b/big": Limited}},
			{15 * time.Second, map[string]State{"a/big": Limited, "b/big": Well}},
			{20 * time.Second, map[string]State{"a/big": Well, "b/big": Well}},
		} {
			time.Sleep(want.after)
			for _, p := range c.places() {
				if p.State != want.state[p.Name] {
					t.Errorf("%v later, %s is %s", want.after, p.Name, p.State)
				}
			}
		}
	})
}

func TestWeightsDivideTheCalls(t *testing.T) {
	models := choices("a/big", "b/big", "c/small")
	models[0].Weight, models[2].Weight = new(6), new(3)
	c := newChooser(t, &Alias{Strategy: ByWeight, Models: models})
	got := c.shares(20_000)
	for name, want := range map[string]float64{"a/big": 0.6, "b/big": 0.1, "c/small": 0.3} {
		if math.Abs(got[name]-want) > 0.02 {
			t.Errorf("%s gets %.3f of the calls, want %.1f", name, got[name], want)
		}
	}
}

// A comparison sends each subject to one model, at any node, and divides the subjects by the
// weights. The arm names the choice.
func TestSplitKeepsEachSubject(t *testing.T) {
	models := choices("a/big", "a/big")
	models[0].Arm, models[1].Arm, models[1].Weight = "plain", "thinks", new(3)
	c := newChooser(t, &Alias{Strategy: ByWeight, Split: "user", Models: models})
	thinks := 0
	for user := range 4000 {
		c.ask.Record.UserID = fmt.Sprint("user", user)
		arm := c.places()[0].Arm()
		for range 3 {
			c.warm("a/big", 500)
			if again := c.places()[0].Arm(); again != arm {
				t.Fatalf("%s gets %s, then %s", c.ask.Record.UserID, arm, again)
			}
		}
		if arm == "thinks" {
			thinks++
		}
	}
	if share := float64(thinks) / 4000; math.Abs(share-0.75) > 0.03 {
		t.Errorf("%.3f of the users get an arm of weight 3 in 4", share)
	}
}

func TestConditions(t *testing.T) {
	models := choices("a/small", "b/big", "c/big")
	models[0].When, models[1].When = "tokens<500 tools=false", "(images=true or property.Team=core) stream=false"
	c := newChooser(t, &Alias{Models: models})
	for name, want := range map[string]struct {
		set  func(*Ask)
		want string
	}{
		"short":          {func(a *Ask) { a.Tokens = 100 }, "a/small c/big"},
		"short, tools":   {func(a *Ask) { a.Tokens, a.Tools = 100, true }, "c/big"},
		"a picture":      {func(a *Ask) { a.Images = true }, "b/big c/big"},
		"a stream":       {func(a *Ask) { a.Images, a.Stream = true, true }, "c/big"},
		"the team":       {func(a *Ask) { a.Record.Properties = map[string]string{"Team": "core"} }, "b/big c/big"},
		"another":        {func(a *Ask) { a.Record.Properties = map[string]string{"Team": "web"} }, "c/big"},
		"a lying caller": {func(a *Ask) { a.Record.Properties = map[string]string{"request.images": "true"} }, "c/big"},
	} {
		c.ask = Ask{Record: new(storage.Record), Tokens: 1000, Warm: nowhere}
		want.set(&c.ask)
		if got := c.order(); got != want.want {
			t.Errorf("%s: %s, want %s", name, got, want.want)
		}
	}
	c = newChooser(t, &Alias{Models: models[:1]})
	c.ask = Ask{Record: new(storage.Record), Tokens: 1000, Warm: nowhere}
	_, err := Choose(c.targets(), func() *Ask { return &c.ask }, c.health)
	if want := models[0].Model + " takes " + models[0].When + ". Add a model"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a call that no model takes: %v, want %q", err, want)
	}
}

func TestStrategiesChoose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChooser(t, &Alias{Strategy: LeastBusy, Models: choices("a/big", "b/big", "c/big")})
		c.health.Begin(c.circuit("a/big"))
		end := c.health.Begin(c.circuit("b/big"))
		if got := c.order(); !strings.HasPrefix(got, "c/big") {
			t.Errorf("least busy: %s", got)
		}
		end()
		c.health.Begin(c.circuit("c/big"))
		if got := c.order(); !strings.HasPrefix(got, "b/big") {
			t.Errorf("least busy, when a call has ended: %s", got)
		}

		c = newChooser(t, &Alias{Strategy: Fastest, Models: choices("a/big", "b/big", "c/big")})
		for i, name := range []string{"a/big", "b/big", "c/big"} {
			for range 5 {
				c.health.Answered(c.circuit(name), time.Duration(3-i)*time.Second, 10)
			}
		}
		if got := c.shares(2000); got["c/big"] < 0.9 || got["c/big"] == 1 || len(got) != 3 {
			t.Errorf("fastest: %v, want the last by far, and the others now and then", got)
		}
		time.Sleep(recently)
		if got := c.shares(2000); got["a/big"] < 0.2 {
			t.Errorf("fastest, when nothing is known any more: %v", got)
		}

		c = newChooser(t, &Alias{Strategy: Cheapest, Models: choices("a/big", "b/small", "c/maker/open")})
		if got := c.order(); got != "b/small c/maker/open a/big" {
			t.Errorf("cheapest: %s", got)
		}
	})
}

// What the provider's cache has of a conversation decides where it is cheapest.
func TestCheapestKnowsTheCache(t *testing.T) {
	models, err := catalog.Parse([]byte(`{"version":"test","providers":[{"id":"alpha","models":[
		{"id":"big","input":["text"],"output":["text"],"prices":[{"input":"3","cache_read":"0.3","output":"1"}]},
		{"id":"small","input":["text"],"output":["text"],"prices":[{"input":"1","cache_read":"0.1","output":"1"}]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c := newChooser(t, &Alias{Strategy: Cheapest, Models: choices("a/big", "b/small")})
	c.resolver.Catalog = models
	c.ask.Tokens = 100_000
	if got := c.order(); got != "b/small a/big" {
		t.Errorf("cold: %s", got)
	}
	c.warm("a/big", 99_000)
	if got := c.order(); got != "a/big b/small" {
		t.Errorf("warm: %s", got)
	}
}

// A conversation stays where its cache is among targets that are as good, and only among these.
func TestConversationsStayWarm(t *testing.T) {
	for name, c := range map[string]struct {
		alias *Alias
		warm  string
		stays bool
	}{
		"one model at two accounts": {&Alias{Models: choices("a/big", "b/big")}, "b/big", true},
		"by weight":                 {&Alias{Strategy: ByWeight, Models: choices("a/big", "b/small", "c/big")}, "b/small", true},
		"another model in order":    {&Alias{Models: choices("a/big", "b/small")}, "b/small", false},
		"the platform's account":    {&Alias{Strategy: ByWeight, Models: choices("a/big", "d/big")}, "d/big", false},
		"accounts of one name":      {&Alias{Models: choices("big")}, "c/big", true},
		"of one name, the platform": {&Alias{Models: choices("big")}, "d/big", false},
	} {
		chooser := newChooser(t, c.alias)
		chooser.warm(c.warm, 800)
		for range 20 {
			if places := chooser.places(); (places[0].Name == c.warm) != c.stays && (c.stays || c.alias.Strategy == InOrder) {
				t.Errorf("%s: %s first", name, places[0].Name)
			}
		}
		breakers := chooser.health.Breakers
		for range shared.MaxFailures {
			breakers.Failed(chooser.circuit(c.warm))
		}
		if first := chooser.places()[0].Name; first == c.warm {
			t.Errorf("%s: it stays at a target that fails", name)
		}
		breakers.Succeeded(chooser.circuit(c.warm))
		chooser.health.Limited(chooser.circuit(c.warm), time.Minute)
		if first := chooser.places()[0].Name; first == c.warm {
			t.Errorf("%s: it stays at a target that is at its limit", name)
		}
	}
}

// A limit at the organisation's own account does not make the platform pay.
func TestLimitsDoNotChangeWhoPays(t *testing.T) {
	c := newChooser(t, &Alias{Models: choices("a/big", "d/big")})
	c.health.Limited(c.circuit("a/big"), time.Minute)
	if got := c.order(); got != "a/big d/big" {
		t.Errorf("at its limit: %s", got)
	}
	c = newChooser(t, &Alias{Models: choices("a/big", "d/big", "b/big")})
	c.health.Limited(c.circuit("a/big"), time.Minute)
	if got := c.order(); got != "d/big b/big a/big" {
		t.Errorf("beside another own account: %s", got)
	}
}

// A target that has failed, or was at its limit, gets its share of the calls when it is back.
func TestTargetsGetCallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChooser(t, &Alias{Strategy: ByWeight, Models: choices("a/big", "b/big")})
		for range shared.MaxFailures {
			c.health.Failed(c.circuit("a/big"))
		}
		c.health.Limited(c.circuit("b/big"), 10*time.Second)
		if got := c.shares(100)["b/big"]; got < 0.99 {
			t.Errorf("next to a target that fails, one at its limit gets %.3f of the calls", got)
		}
		time.Sleep(shared.Cooldown)
		if got := c.shares(2000)["a/big"]; math.Abs(got-0.5) > 0.05 {
			t.Errorf("when both are back, one gets %.3f of the calls", got)
		}
	})
}

// An organisation's own accounts come before the platform's, whatever the strategy: the order
// decides who pays.
func TestOwnAccountsComeFirst(t *testing.T) {
	for _, s := range strategies {
		c := newChooser(t, &Alias{Strategy: s, Models: choices("big")})
		for range 100 {
			if places := c.places(); len(places) != 4 || places[3].Account.Label != "d" {
				t.Fatalf("%s: %s", s, c.order())
			}
		}
	}
}

func TestMalformedAliases(t *testing.T) {
	for want, a := range map[string]*Alias{
		"name at least one model":            {},
		"want order, weight":                 {Strategy: "random", Models: choices("m")},
		"set strategy weight":                {Split: "user", Models: choices("m")},
		"want user, session":                 {Strategy: ByWeight, Split: "model", Models: choices("m")},
		"other is an alias, too":             {Models: choices("other")},
		"the name of one model":              {Models: choices("m,n")},
		"cost is not known before the call":  {Models: []*Choice{{Model: "m", When: "cost>1"}}},
		"unknown field":                      {Models: []*Choice{{Model: "m", When: "colour=red"}}},
		"messages is what the client asks":   {Models: []*Choice{{Model: "m", Set: map[string]json.RawMessage{"messages": json.RawMessage("[]")}}}},
		"limit max_tokens 0: want 1 or more": {Models: []*Choice{{Model: "m", Limit: map[string]int64{"max_tokens": 0}}}},
		"have weights":                       {Models: []*Choice{{Model: "m", Weight: new(2)}}},
		"two models have the arm m":          {Strategy: ByWeight, Models: choices("m", "m")},
		"a model has no name":                {Models: []*Choice{nil}},
		"a shadow has no model":              {Models: choices("m"), Shadows: []*Shadow{nil}},
		"shadow is the arm of shadows":       {Models: []*Choice{{Model: "m", Arm: "shadow"}}},
		"model shadow: shadow is the arm":    {Models: choices("shadow")},
		"share 2: want a part":               {Models: choices("m"), Shadows: []*Shadow{{Model: "n", Share: 2}}},
		"weight -1: want 1 or more":          {Models: []*Choice{{Model: "m", Weight: new(-1)}}},
		"weight 0: want 1 or more":           {Models: []*Choice{{Model: "m", Weight: new(0)}}},
	} {
		if err := a.Check(func(name string) bool { return name == "other" }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestParametersOfChoices(t *testing.T) {
	c := &Choice{
		Model: "m", Set: map[string]json.RawMessage{"reasoning_effort": json.RawMessage(`"low"`), "temperature": json.RawMessage("0")},
		Limit: map[string]int64{"max_tokens": 100},
	}
	for dialect, cases := range map[plugins.Dialect]map[string]string{
		plugins.Chat: {
			`{"messages":[]}`:                                 `{"messages":[],"reasoning_effort":"low","temperature":0,"max_completion_tokens":100}`,
			`{"max_tokens":50,"temperature":1}`:               `{"max_tokens":50,"temperature":0,"reasoning_effort":"low"}`,
			`{"max_tokens":500,"max_completion_tokens":400}`:  `{"max_tokens":100,"max_completion_tokens":100,"reasoning_effort":"low","temperature":0}`,
			`{"max_tokens":"many","reasoning_effort":"high"}`: `{"max_tokens":100,"reasoning_effort":"low","temperature":0}`,
		},
		plugins.Responses: {`{"input":"hi","reasoning":{"summary":"auto"}}`: `{"input":"hi","reasoning":{"summary":"auto","effort":"low"},"temperature":0,"max_output_tokens":100}`},
		plugins.Messages: {
			`{"max_tokens":4000}`: `{"max_tokens":100,"output_config":{"effort":"low"},"temperature":0}`,
			`{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":8000,"display":"omitted"}}`: `{"max_tokens":100,"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"low"},"temperature":0}`,
		},
	} {
		for body, want := range cases {
			got, warnings, err := c.Apply(dialect, []byte(body))
			if err != nil || string(got) != want {
				t.Errorf("%s: %s becomes %s, %v, want %s", dialect, body, got, err, want)
			}
			if len(warnings) < 2 {
				t.Errorf("%s: the client is told %q", body, warnings)
			}
		}
	}
}

// A field that stands twice is refused: what is set in one of them is not what is read. What a model
// may think fits into its output.
func TestParametersThatDoNotFit(t *testing.T) {
	c := &Choice{Model: "m", Limit: map[string]int64{"max_tokens": 4000}}
	if _, _, err := c.Apply(plugins.Chat, []byte(`{"max_tokens":10,"max_tokens":100000}`)); err == nil {
		t.Error("a limit that stands twice is taken")
	}
	for body, want := range map[string]string{
		`{"max_tokens":16000,"thinking":{"type":"enabled","budget_tokens":10000}}`: `{"max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":2000}}`,
		`{"max_tokens":1500,"thinking":{"type":"enabled","budget_tokens":1024}}`:   `{"max_tokens":1500,"thinking":{"type":"enabled","budget_tokens":1024}}`,
	} {
		if got, _, err := c.Apply(plugins.Messages, []byte(body)); err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v", body, got, err)
		}
	}
	off := &Choice{Model: "m", Set: map[string]json.RawMessage{"reasoning_effort": json.RawMessage(`"none"`)}}
	if got, _, err := off.Apply(plugins.Messages, []byte(`{"thinking":{"type":"enabled","budget_tokens":2000}}`)); err != nil || gjson.GetBytes(got, "thinking").Raw != `{"type":"disabled"}` || gjson.GetBytes(got, "output_config.effort").Exists() {
		t.Errorf("without effort: %s, %v", got, err)
	}
	var a Alias
	if err := json.Unmarshal([]byte(`{"stratgy":"weight","models":[{"model":"m"}]}`), &a); err == nil {
		t.Error("a misspelt field is taken")
	}
}

// An explicit fallback stays although a model with a condition is the same target.
func TestFallbackBesideACondition(t *testing.T) {
	c := newChooser(t, &Alias{Models: []*Choice{{Model: "a/big", When: "tools=true"}}})
	targets, _, err := c.resolver.Resolve("it,a/big")
	if err != nil {
		t.Fatal(err)
	}
	if places, err := Choose(targets, func() *Ask { return &c.ask }, c.health); err != nil || len(places) != 1 || places[0].Choice != nil {
		t.Errorf("%v, %v", places, err)
	}
}

// Shares are those of the accounts that get calls: own ones, where there are any.
func TestSharesOfOwnAccounts(t *testing.T) {
	c := newChooser(t, &Alias{Strategy: ByWeight, Models: choices("big", "d/small")})
	got := make(map[string]float64)
	for _, s := range c.resolver.Aliases["it"].Shares(c.targets(), &c.ask) {
		got[s.Choice.Model] += s.Part
	}
	if math.Abs(got["big"]-0.5) > 1e-9 || math.Abs(got["d/small"]-0.5) > 1e-9 {
		t.Errorf("shares %v", got)
	}
}

// Each target of an alias has an arm, so that its calls can be told from those of another model at the same
// account. Accounts that serve a model under another name are as good as before.
func TestEachChoiceHasAnArm(t *testing.T) {
	c := newChooser(t, &Alias{Models: choices("a/big", "b/big", "a/small")})
	c.warm("b/big", 500)
	var arms []string
	for _, p := range c.places() {
		arms = append(arms, p.Arm())
	}
	if got := strings.Join(arms, " "); got != "b/big a/big a/small" {
		t.Errorf("arms %s", got)
	}
	if targets, _, err := c.resolver.Resolve("a/big"); err != nil || targets[0].Arm() != "" {
		t.Errorf("a model without an alias: %v, %v", targets, err)
	}
}

// A subject keeps its arm in every version of Weir: a comparison of models runs for weeks.
func TestArmsDoNotMove(t *testing.T) {
	weights := []int{3, 1, 2}
	alias := &Alias{Strategy: ByWeight, Split: "user"}
	for i, arm := range []string{"first", "second", "third"} {
		alias.Models = append(alias.Models, &Choice{Model: "a/big", Arm: arm, Weight: &weights[i]})
	}
	c := newChooser(t, alias)
	got := make(map[string]string)
	for _, user := range []string{"ada", "bob", "carol", "dave", "eve", "frank", "grace", "heidi", "ö", "a b"} {
		c.ask.Record.UserID = user
		got[user] = c.places()[0].Arm()
	}
	want := map[string]string{
		"ada": "third", "bob": "first", "carol": "first", "dave": "third", "eve": "third", "frank": "second", "grace": "first", "heidi": "first",
		"ö": "second", "a b": "first",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
