package whatif

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/shared"
	"github.com/weirhq/weir/test/agents"
)

const testCatalog = `{"version":"test","providers":[
	{"id":"alpha","models":[
		{"id":"big","owner":"alpha","input":["text"],"output":["text"],"prices":[{"input":"3","cache_read":"0.3","output":"12"},{"tier":"flex","input":"1.5","cache_read":"0.15","output":"6"}]},
		{"id":"small","owner":"alpha","input":["text"],"output":["text"],"prices":[{"input":"1","cache_read":"0.1","output":"4"}]},
		{"id":"plain","owner":"alpha","input":["text"],"output":["text"],"prices":[{"input":"2","output":"4"}]}]},
	{"id":"beta","models":[
		{"id":"other","owner":"beta","input":["text"],"output":["text"],"prices":[{"input":"2","cache_read":"0.5","output":"9"}]}]}]}`

// lab is a simulator of conversations at four accounts, with providers' caches.
type lab struct {
	t        *testing.T
	resolver *routing.Resolver
}

func newLab(t *testing.T) *lab {
	prices, err := catalog.Parse([]byte(testCatalog))
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t, &routing.Resolver{Catalog: prices, Aliases: make(map[string]*routing.Alias)}}
	for i, label := range []string{"a", "b", "c", "d"} {
		account := &providers.Account{Label: label, Provider: "alpha"}
		if label == "d" {
			account.Provider = "beta"
		}
		account.ID[0] = byte(i)
		l.resolver.Accounts = append(l.resolver.Accounts, account)
	}
	return l
}

func (l *lab) policy(text string) *Policy {
	p, err := Parse([]byte(text), l.resolver.Aliases, parseBudget)
	if err != nil {
		l.t.Fatalf("%s: %v", text, err)
	}
	return p
}

func parseBudget(text []byte) (*money.Budget, error) { return new(money.Budgets).Parse("org", text) }

// talk is what was asked in a turn of a conversation.
type talk struct {
	id, parent uuid.UUID
	at         time.Time
	chat, turn int
	input      int64 // tokens of a model of alpha, growing
	output     int64
}

// talks are conversations with a common beginning of 2,000 tokens, some with a long pause.
func talks(r *rand.Rand, chats, turns int) (all []talk) {
	begin := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	last := make([]talk, chats)
	for turn := range turns {
		for chat := range chats {
			before := last[chat]
			next := talk{id: uuid.New(), parent: before.id, chat: chat, turn: turn, input: 2000, output: 50 + r.Int64N(500), at: begin.Add(time.Duration(chat) * time.Second)}
			if turn > 0 {
				next.input, next.at = before.input+200+r.Int64N(800), before.at.Add(time.Minute)
				if r.IntN(20) == 0 {
					next.at = before.at.Add(2 * time.Hour)
				}
			}
			last[chat] = next
			all = append(all, next)
		}
	}
	return all
}

// agentTalks are the calls of labelled sessions of agents in a week, ten of them at a time: with
// sub-agents, second tries, forks and compactions, of which each is a conversation of its own.
func agentTalks(sessions int) (all []talk) {
	begin := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	made := make(map[*agents.Call]talk)
	chats := 0
	for group := range sessions / 10 {
		at := begin.Add(time.Duration(group) * 7 * 24 * time.Hour / time.Duration(sessions/10))
		for _, c := range agents.Sessions(uint64(group), 10) {
			at = at.Add(15 * time.Second)
			next := talk{id: uuid.New(), at: at, turn: c.Turn - 1, input: int64(c.Usage.Input), output: int64(c.Usage.Output)}
			before, follows := made[c.Parent]
			next.parent = before.id
			if next.chat = before.chat; !follows || before.turn+1 != next.turn {
				chats++
				next.chat = chats
			}
			made[c] = next
			all = append(all, next)
		}
	}
	return all
}

// run makes the calls by a policy, and returns their records. Models of beta count 1.3 times the input
// and write 0.8 times the output. What the budgets of the policy refuse is not made.
func (l *lab) run(all []talk, p *Policy) (records []*storage.Record, cost plugins.Nanodollars) {
	own := &routing.Resolver{Catalog: l.resolver.Catalog, Accounts: l.resolver.Accounts, Aliases: map[string]*routing.Alias{"it": &p.Alias}}
	targets, _, err := own.Resolve("it")
	if err != nil {
		l.t.Fatal(err)
	}
	type place struct {
		target string
		at     time.Time
		input  int64
	}
	went := make(map[int]place)          // the turn before, by conversation
	kept := make(map[string]place)       // what each target's cache has, by target and conversation
	shared := make(map[string]time.Time) // when a target last had the common beginning
	var budgets trials
	for _, b := range p.Budgets {
		budgets = append(budgets, money.NewTrial(b, func(*money.Refusal) {}))
	}
	for _, c := range all {
		r := &storage.Record{ID: c.id, ParentID: c.parent, Turn: plugins.Known(int64(c.turn) + 1), CreatedAt: storage.Millis(c.at), Dialect: plugins.Chat, RequestModel: "it", UserID: fmt.Sprint("user", c.chat%5), GatewayNode: "n", TargetURL: "/v1", Status: plugins.Known(200)}
		ask := &routing.Ask{Record: r, Tokens: c.input, Warm: func(t routing.Target) int64 {
			if w := went[c.chat]; w.target == t.Name && c.at.Sub(w.at) <= time.Hour && !p.NoAffinity {
				return w.input
			}
			return 0
		}}
		places, err := routing.Choose(targets, func() *routing.Ask { return ask }, routing.Health{Breakers: noBreakers{}, Loads: new(routing.Loads)})
		if err != nil {
			l.t.Fatal(err)
		}
		to := places[0].Target
		longer, out := 1.0, 1.0
		if to.Account.Provider == "beta" {
			longer, out = 1.3, 0.8
		}
		count := func(n int64) int64 { return int64(float64(n) * longer) }
		var read int64
		in := fmt.Sprint(to.Name, c.chat)
		if w, ok := kept[in]; ok && c.at.Sub(w.at) <= time.Hour {
			read = count(min(w.input, c.input))
		} else if at, ok := shared[to.Name]; ok && c.at.Sub(at) <= time.Hour {
			read = count(min(2000, c.input))
		}
		r.Provider, r.Account, r.Model, r.Arm = to.Account.Provider, to.Account.Label, to.Model, to.Arm()
		written, tier := int64(float64(c.output)*out), p.Tier
		if limit, ok := to.Choice.Limit["max_tokens"]; ok {
			written = min(written, limit)
		}
		if text := to.Choice.Set["max_tokens"]; text != nil {
			limit, _ := strconv.ParseInt(string(text), 10, 64)
			written = min(written, limit)
		}
		if text := to.Choice.Set["service_tier"]; text != nil {
			tier = strings.Trim(string(text), `"`)
		}
		r.Usage = plugins.Usage{Input: plugins.Known(count(c.input)), Output: plugins.Known(written)}
		if to.Model != "plain" {
			r.Usage.CacheRead = plugins.Known(read)
		}
		r.ServiceTier = tier
		r.Cost = to.Listed.Cost(r.Usage, catalog.Conditions{At: c.at, Tier: tier})
		if !r.Cost.Valid {
			l.t.Fatalf("%s has no price", to.Name)
		}
		if !budgets.fit(limitedCall{r, r}) {
			continue
		}
		budgets.admit(limitedCall{r, r})
		went[c.chat], kept[in], shared[to.Name] = place{to.Name, c.at, c.input}, place{to.Name, c.at, c.input}, c.at
		cost += r.Cost.N
		records = append(records, r)
	}
	return records, cost
}

type noBreakers struct{}

func (noBreakers) Failed(shared.Key)    {}
func (noBreakers) Succeeded(shared.Key) {}
func (noBreakers) Open(shared.Key) bool { return false }

func (l *lab) try(records []*storage.Record, p *Policy) *Trial {
	t, err := New(p, l.resolver)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, r := range records {
		c := stored(r, p.Columns())
		if err := t.Add(c, c); err != nil {
			l.t.Fatal(err)
		}
	}
	return t
}

// stored is a record as a store answers it that is asked for some columns.
func stored(r *storage.Record, columns []string) *storage.Record {
	if columns == nil {
		return r
	}
	some := &storage.Record{ID: r.ID, CreatedAt: r.CreatedAt}
	for _, c := range slices.Concat(storage.Columns, storage.DetailColumns) {
		if slices.Contains(columns, c.Name) {
			reflect.ValueOf(c.At(some)).Elem().Set(reflect.ValueOf(c.At(r)).Elem())
		}
	}
	return some
}

// All of a usage can have a price.
func TestColumnsHaveTheUsage(t *testing.T) {
	r := &storage.Record{}
	usage := reflect.ValueOf(&r.Usage).Elem()
	for i := range usage.NumField() {
		usage.Field(i).FieldByName("Valid").SetBool(true)
		usage.Field(i).FieldByName("N").SetInt(int64(i) + 1)
	}
	if got := stored(r, figures).Usage; got != r.Usage {
		t.Errorf("the columns have %+v of %+v", got, r.Usage)
	}
}

// Of a record, a trial reads no more than the columns of its policy.
func TestColumnsAreEnough(t *testing.T) {
	l := newLab(t)
	random := rand.New(rand.NewPCG(4, 4))
	records, _ := l.run(talks(random, 20, 5), l.policy(ranPolicy))
	some := func(name string) string { return fmt.Sprint(name, random.IntN(4)) }
	for _, r := range records {
		r.RootID, r.Project, r.KeyID, r.AuthHash, r.SessionID = uuid.UUID{byte(random.IntN(9))}, some("p"), some("key"), some("hash"), some("s")
		r.CountryCode, r.NodeID, r.Referrer, r.PromptID, r.Latency = some("c"), some("n"), some("r"), some("i"), plugins.KnownDuration(time.Duration(random.IntN(100))*time.Second)
		r.Properties = map[string]string{"Team": some("t")}
		if random.IntN(5) == 0 {
			r.Status, r.Usage, r.Cost = plugins.Known(500), plugins.Usage{}, plugins.Cost{}
		}
	}
	for text, whole := range map[string]bool{
		`{"models":[{"model":"a/big"}],"budgets":[{"name":"b","limit":"0.02","per":"key","trust":true}]}`:                                                     false,
		`{"models":[{"model":"a/big"}],"budgets":[{"name":"b","limit":"0.02","per":"project","trust":true},{"name":"c","limit":"0.03","per":"tree"}]}`:        false,
		`{"models":[{"model":"d/other"}],"budgets":[{"name":"b","limit":"2","quantity":"concurrent","per":"session","trust":true}]}`:                          false,
		`{"models":[{"model":"a/big"}],"budgets":[{"name":"b","limit":"0.02","filter":{"request_response_rmt":{"project":{"equals":"p1"}}}}]}`:                false,
		`{"models":[{"model":"a/big"}],"budgets":[{"name":"b","limit":"0.02","filter":{"request_response_rmt":{"properties":{"Team":{"equals":"t1"}}}}}]}`:    true,
		`{"models":[{"model":"a/big"}],"budgets":[{"name":"b","limit":"0.02","per":"property.Team","trust":true}]}`:                                           true,
		`{"models":[{"model":"a/big","when":"tokens<3000"},{"model":"a/small","when":"country=c1"},{"model":"d/other"}]}`:                                     false,
		`{"strategy":"weight","split":"user","models":[{"model":"a/big","when":"project=p1"},{"model":"a/small","when":"prompt_id=i1"},{"model":"d/other"}]}`: false,
		`{"models":[{"model":"a/big","when":"property.Team=t1"},{"model":"a/small"}]}`:                                                                        true,
	} {
		p := l.policy(text)
		if (p.Columns() == nil) != whole {
			t.Errorf("%s reads %q", text, p.Columns())
		}
		var answers [2]string
		for i := range answers {
			tried, err := New(p, l.resolver)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				if i == 1 {
					r = stored(r, p.Columns())
				}
				if err := tried.Add(r, r); err != nil {
					t.Fatal(err)
				}
			}
			text, err := json.Marshal([]any{tried.Total, tried.By, tried.Targets, tried.Budgets()})
			if err != nil {
				t.Fatal(err)
			}
			answers[i] = string(text)
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: %s of the columns, and %s of all", text, answers[1], answers[0])
		}
	}
}

const ranPolicy = `{"strategy":"weight","models":[{"model":"a/big","weight":2},{"model":"b/big"}]}`

// The policy that ran gives the bill, to the billionth of a dollar, by its name and by its text.
func TestThePolicyThatRanGivesTheBill(t *testing.T) {
	l := newLab(t)
	p := l.policy(ranPolicy)
	l.resolver.Aliases["it"] = &p.Alias
	for _, all := range [][]talk{talks(rand.New(rand.NewPCG(1, 1)), 30, 8), agentTalks(20)} {
		records, cost := l.run(all, p)
		for _, text := range []string{`"it"`, ranPolicy} {
			got := l.try(records, l.policy(text)).Total
			if got.Recorded.N != cost || got.Expected.N != cost || got.Low.N != cost || got.High.N != cost || got.Calls != int64(len(all)) || got.Unknown != 0 {
				t.Errorf("%s: %+v, want %d", text, got, cost)
			}
		}
	}
}

// Calls whose arm no alias has any more went by another policy than the alias is now.
func TestAChangedAliasIsAnotherPolicy(t *testing.T) {
	l := newLab(t)
	records, _ := l.run(talks(rand.New(rand.NewPCG(6, 6)), 20, 5), l.policy(ranPolicy))
	l.resolver.Aliases["it"] = &l.policy(`{"strategy":"weight","models":[{"model":"a/small"}]}`).Alias
	if got, want := l.try(records, l.policy(`"it"`)).Total, l.try(records, l.policy(`["a/small"]`)).Total; *got != *want {
		t.Errorf("%+v, want %+v", got, want)
	}
	l.resolver.Aliases["before"] = &l.policy(ranPolicy).Alias // to which a budget may have sent the calls
	if got := l.try(records, l.policy(`"it"`)).Total; got.Expected != got.Recorded {
		t.Errorf("by another alias: %+v", got)
	}
}

// What calls cost that are made by another policy is within what the trial says, always, and the
// mean of many runs is near to what it expects where the tokens are the same. How near a mean can be
// said to be, the runs themselves tell: five of its standard errors leave one failure in a million.
func TestOtherPoliciesAreWithinTheRange(t *testing.T) {
	l := newLab(t)
	random := rand.New(rand.NewPCG(2, 2))
	policies := []string{
		`["a/big"]`, `["a/small"]`, `["d/other"]`, `["a/plain"]`, `{"tier":"flex","models":[{"model":"a/big"}]}`,
		`{"strategy":"weight","models":[{"model":"a/big"},{"model":"b/big"},{"model":"c/big"}]}`,
		`{"strategy":"weight","affinity":false,"models":[{"model":"a/big"},{"model":"b/big"},{"model":"c/big"}]}`,
		`{"strategy":"weight","models":[{"model":"a/small","weight":3},{"model":"b/big"},{"model":"d/other","weight":2}]}`,
		`{"strategy":"weight","affinity":false,"models":[{"model":"a/small","weight":3},{"model":"d/other"}]}`,
		`{"strategy":"order","models":[{"model":"a/small","when":"tokens<5000"},{"model":"d/other"}]}`,
		`{"models":[{"model":"a/big","set":{"service_tier":"flex","max_tokens":40}}]}`,
		`{"strategy":"weight","models":[{"model":"a/big","limit":{"max_tokens":90},"set":{"service_tier":"flex"}},{"model":"b/big","limit":{"max_tokens":60}}]}`,
	}
	for range 10 {
		var models []string
		for _, name := range []string{"a/big", "b/big", "b/small", "c/plain", "d/other"} {
			if random.IntN(2) == 0 {
				models = append(models, fmt.Sprintf(`{"model":%q,"weight":%d}`, name, 1+random.IntN(4)))
			}
		}
		if models != nil {
			policies = append(policies, fmt.Sprintf(`{"strategy":"weight","affinity":%t,"models":[%s]}`, random.IntN(2) == 0, strings.Join(models, ",")))
		}
	}
	all := map[string][]talk{"talks": talks(random, 40, 10), "agents": agentTalks(20)}
	records := make(map[string][]*storage.Record)
	for calls := range all {
		records[calls], _ = l.run(all[calls], l.policy(ranPolicy))
	}
	try := func(calls, text string, runs int) {
		p := l.policy(text)
		got := l.try(records[calls], p).Total
		var mean, squares float64 // by Welford's method
		for run := range runs {
			_, cost := l.run(all[calls], p)
			if cost < got.Low.N || cost > got.High.N {
				t.Errorf("%s: %s: a run costs %d, the trial says %d to %d", calls, text, cost, got.Low.N, got.High.N)
			}
			delta := float64(cost) - mean
			mean += delta / float64(run+1)
			squares += delta * (float64(cost) - mean)
		}
		deviation := math.Sqrt(squares / float64(runs-1) / float64(runs))
		if off := math.Abs(mean - float64(got.Expected.N)); off > 0.08*mean+5*deviation && !strings.Contains(text, "other") {
			t.Errorf("%s: %s: runs cost %.0f ± %.0f, the trial expects %d", calls, text, mean, deviation, got.Expected.N)
		}
		if got.Unknown != 0 || got.Low.N > got.Expected.N || got.Expected.N > got.High.N {
			t.Errorf("%s: %s: %+v", calls, text, got)
		}
	}
	for _, text := range policies {
		try("talks", text, 20)
		try("agents", text, 20)
	}
}

// The budgets of a policy refuse of the recorded calls what a run of them refuses, exactly under the
// policy that ran, and else within the range. Who refused them is counted by user.
func TestBudgetsOfAPolicy(t *testing.T) {
	l := newLab(t)
	all := talks(rand.New(rand.NewPCG(3, 3)), 40, 10)
	ran := l.policy(ranPolicy)
	l.resolver.Aliases["it"] = &ran.Alias
	records, _ := l.run(all, ran)
	for _, budgets := range []string{
		`{"name":"all","limit":"1"}`,
		`{"name":"each","limit":"0.15","window":"day","per":"user","trust":true}`,
		`{"name":"pace","limit":"15","quantity":"requests","window":"5m","per":"user","trust":true},{"name":"all","limit":"2"}`,
		`{"name":"words","limit":"9000","quantity":"uncached_tokens","window":"3m"}`,
		`{"name":"of one","limit":"0.4","filter":{"request_response_rmt":{"user_id":{"equals":"user1"}}}}`,
	} {
		for _, text := range []string{
			ranPolicy, `{"models":[{"model":"a/big"}]}`, `{"models":[{"model":"d/other"}]}`,
			`{"strategy":"weight","affinity":false,"models":[{"model":"a/small","weight":3},{"model":"b/big"},{"model":"d/other"}]}`,
		} {
			p := l.policy(strings.TrimSuffix(text, "}") + `,"budgets":[` + budgets + `]}`)
			tried := l.try(records, p)
			got := tried.Total
			if got.Refused == 0 || got.Refused == got.Calls || got.Low.N > got.Expected.N || got.Expected.N > got.High.N {
				t.Errorf("%s, %s: %+v", budgets, text, got)
			}
			var byUser, byBudget int64
			for _, a := range tried.By["user"] {
				byUser += a.Refused
			}
			for _, b := range tried.Budgets() {
				byBudget += b.Refused
			}
			if byUser != got.Refused || byBudget < got.Refused {
				t.Errorf("%s, %s: %d calls are refused, of users %d, by budgets %d", budgets, text, got.Refused, byUser, byBudget)
			}
			if text == ranPolicy {
				if want := admitted(records, p.Budgets); got.Expected.N != want || got.Low.N != want || got.High.N != want {
					t.Errorf("%s: of the policy that ran, %+v, want %d", budgets, got, want)
				}
				continue
			}
			for range 10 {
				_, cost := l.run(all, p)
				if cost < got.Low.N || cost > got.High.N {
					t.Errorf("%s, %s: a run costs %d, the trial says %d to %d", budgets, text, cost, got.Low.N, got.High.N)
				}
			}
		}
	}
}

// admitted is what those of some calls have cost that all of some budgets admit.
func admitted(records []*storage.Record, budgets []*money.Budget) (cost plugins.Nanodollars) {
	var tried trials
	for _, b := range budgets {
		tried = append(tried, money.NewTrial(b, func(*money.Refusal) {}))
	}
	for _, r := range records {
		if tried.fit(limitedCall{r, r}) {
			tried.admit(limitedCall{r, r})
			cost += r.Cost.N
		}
	}
	return cost
}

// What cannot be said is counted, and not guessed.
// A policy that is tried may name providers without a key. One that is in force leaves them out.
func TestProvidersWithoutAKey(t *testing.T) {
	l := newLab(t)
	last := len(l.resolver.Accounts) - 1
	l.resolver.Keyless, l.resolver.Accounts = l.resolver.Accounts[last:], l.resolver.Accounts[:last]
	l.resolver.Aliases["pool"] = routing.InTheirOrder("a/small", "d/other")
	for policy, want := range map[string]int{`["d/other"]`: 1, `["a/big","d/other"]`: 2, `["other"]`: 1, `"pool"`: 1} {
		trial, err := New(l.policy(policy), l.resolver)
		if err != nil || len(trial.targets) != want {
			t.Errorf("%s: %d targets, %v, want %d", policy, len(trial.targets), err, want)
		}
	}
}

func TestUnknownCosts(t *testing.T) {
	l := newLab(t)
	l.resolver.Accounts[0].Models = []string{"secret", "big"}
	base := storage.Record{
		ID: uuid.New(), Dialect: plugins.Chat, Provider: "alpha", Account: "a", Model: "big", Cost: plugins.KnownCost(1000),
		Usage: plugins.Usage{Input: plugins.Known(10), Output: plugins.Known(10)},
	}
	unpriced, unknown, refused, embedding := base, base, base, base
	unpriced.Cost = plugins.Cost{}
	refused.Usage, refused.Cost = plugins.Usage{}, plugins.KnownCost(0)
	embedding.Dialect = plugins.Embeddings
	for name, c := range map[string]struct {
		record  storage.Record
		policy  string
		unknown int64
		low     plugins.Nanodollars
	}{
		"a call without a cost":     {unpriced, `["a/big"]`, 1, 0},
		"a model without a price":   {unknown, `["a/secret"]`, 1, 0},
		"no model takes it":         {unknown, `{"models":[{"model":"a/big","when":"tokens>50"}]}`, 1, 0},
		"a refused call":            {refused, `["a/secret"]`, 0, 0},
		"what the policy moves not": {embedding, `["a/secret"]`, 0, 1000},
	} {
		got := l.try([]*storage.Record{&c.record}, l.policy(c.policy)).Total
		if got.Unknown != c.unknown || got.Low.N != c.low {
			t.Errorf("%s: %+v", name, got)
		}
	}
	told := strings.Join(l.try(nil, l.policy(`["a/big","a/secret","z/gone"]`)).Assumptions(), "\n")
	if !strings.Contains(told, "no price for a/secret:") || !strings.Contains(told, "no provider serves z/gone") || strings.Contains(told, "a/big") {
		t.Errorf("the assumptions are\n%s", told)
	}
	for text, want := range map[string]string{
		`"nobody"`: "there is no alias nobody", `{"strategy":"dice","models":[{"model":"a/big"}]}`: "want order",
		`{"models":[{"model":"a/big","when":"tools=true"}]}`: "is not recorded", `7`: "a policy is", `{"cache_life":"2h","models":["a/big"]}`: "a policy is",
		`{"cache_life":"2h","models":[{"model":"a/big"}]}`: "want 5m or 1h", `{"models":[{"model":"a/big"}],"budgets":[{"name":"b","limit":"x"}]}`: "budgets: budget b: limit", `{"modles":["a/big"]}`: "modles",
	} {
		if _, err := Parse([]byte(text), nil, parseBudget); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A policy cannot ask for more models and budgets than can be tried, and what is kept of calls is
// bounded, whatever callers name.
func TestPolicyIsBounded(t *testing.T) {
	l := newLab(t)
	list := func(n int, element string) string { return strings.TrimSuffix(strings.Repeat(element+",", n), ",") }
	const budget = `{"name":"b","limit":"1","per":"session","trust":true,"window":"total"}`
	for _, c := range []struct{ policy, want string }{
		{"[" + list(maxModels, `"a/big"`) + "]", ""},
		{"[" + list(maxModels+1, `"a/big"`) + "]", "101 models"},
		{`{"models":[{"model":"a/big"}],"shadows":[` + list(maxModels, `{"model":"a/big","share":1}`) + `]}`, "101 models"},
		{`{"models":[{"model":"a/big"}],"budgets":[` + list(maxBudgets, budget) + `]}`, ""},
		{`{"models":[{"model":"a/big"}],"budgets":[` + list(maxBudgets+1, budget) + `]}`, "budgets: there are 21"},
		{`{"models":[{"model":"a/big"}],"budgets":[null]}`, "a budget takes a name"},
		{`{"models":[{"model":"a/big"}],"budgets":[{"name":"b","limit":"1","stages":[null]}]}`, "a stage is null"},
	} {
		if _, err := Parse([]byte(c.policy), nil, parseBudget); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %v, want %q", c.policy, err, c.want)
		}
	}
	trial, err := New(l.policy(`{"models":[{"model":"a/small"},{"model":"d/other"}],"strategy":"weight","affinity":false,"budgets":[`+list(maxBudgets, budget)+`]}`), l.resolver)
	if err != nil {
		t.Fatal(err)
	}
	for i := range money.MaxTrialSize {
		r := &storage.Record{
			ID: uuid.New(), SessionID: fmt.Sprint(i), Dialect: plugins.Chat, Provider: "alpha", Account: "a", Model: "big", GatewayNode: "n", TargetURL: "/v1",
			Usage: plugins.Usage{Input: plugins.Known(10), Output: plugins.Known(10)}, Cost: plugins.KnownCost(1000),
		}
		if err = trial.Add(r, r); err != nil {
			if most := money.MaxTrialSize/maxBudgets/3 + 1; i > most {
				t.Errorf("%d calls of a session each are kept by %d budgets, want at most %d", i, maxBudgets, most)
			}
			break
		}
	}
	if !errors.Is(err, money.ErrTrialTooLarge) {
		t.Errorf("budgets that keep each session apart: %v", err)
	}
}

// A budget of a key counts the calls of keys that its holder has created, in a trial as while calls are made,
// and names either.
func TestBudgetsCountCreators(t *testing.T) {
	l := newLab(t)
	r := &storage.Record{
		ID: uuid.New(), KeyID: "key_own", Dialect: plugins.Chat, Provider: "alpha", Account: "a", Model: "big", GatewayNode: "n", TargetURL: "/v1",
		Usage: plugins.Usage{Input: plugins.Known(10), Output: plugins.Known(10)}, Cost: plugins.KnownCost(1000),
	}
	as := *r
	as.KeyID = "key_parent"
	for _, key := range []string{"key_own", "key_parent", "key_other"} {
		trial, err := New(l.policy(`{"models":[{"model":"a/small"}],"budgets":[{"name":"b","limit":"1","quantity":"requests","window":"total","per":"key","filter":{"request_response_rmt":{"key_id":{"equals":"`+key+`"}}}}]}`), l.resolver)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := trial.Add(r, &as); err != nil {
				t.Fatal(err)
			}
		}
		want := int64(2)
		if key == "key_other" {
			want = 0
		}
		if got := trial.Budgets()[0]; got.Calls != want || got.Refused != want/2 {
			t.Errorf("a budget of %s: %+v, want %d calls", key, got, want)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	l := newLab(&testing.T{})
	records, _ := l.run(talks(rand.New(rand.NewPCG(1, 1)), 100, 10), l.policy(ranPolicy))
	t, _ := New(l.policy(`{"strategy":"weight","models":[{"model":"a/small"},{"model":"d/other"}]}`), l.resolver)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r := records[i%len(records)]
		if err := t.Add(r, r); err != nil {
			b.Fatal(err)
		}
	}
}
