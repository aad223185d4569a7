package routing_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/shared"
)

// cacheRules are those of a vendor's cache.
type cacheRules struct {
	dialect plugins.Dialect
	model   string
	mark    string        // what a request says to be cached, "" if all is
	least   int64         // tokens that are cached
	step    int64         // by which prefixes are cached
	life    time.Duration // since the last use
	burst   int           // calls in a minute with one beginning that find the same cache, 0 for all
}

var vendors = map[string]cacheRules{
	// https://platform.openai.com/docs/guides/prompt-caching
	"OpenAI": {plugins.Chat, "gpt-5.1", "", 1024, 128, 10 * time.Minute, 15},
	// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
	"Anthropic, 5 minutes": {plugins.Messages, "claude-sonnet-4-5", `,"cache_control":{"type":"ephemeral"}`, 1024, 1, 5 * time.Minute, 0},
	"Anthropic, an hour":   {plugins.Messages, "claude-sonnet-4-5", `,"cache_control":{"type":"ephemeral","ttl":"1h"}`, 1024, 1, time.Hour, 0},
	// https://ai.google.dev/gemini-api/docs/caching
	"Gemini": {plugins.Chat, "gemini-2.5-flash", "", 2048, 1, time.Hour, 0},
}

const (
	simulatedAccounts = 8
	simulatedAgents   = 200
	simulatedTurns    = 20
	instructionTokens = 2500
	turnTokens        = 200
)

// turnAt is a turn of an agent, and when it comes.
type turnAt struct {
	agent, turn int
	at          time.Duration
}

// schedule has the turns of all agents. A pause is seconds long, sometimes minutes, and seldom hours.
func schedule(r *rand.Rand) (all []turnAt) {
	for agent := range simulatedAgents {
		at := time.Duration(r.IntN(600)) * time.Second
		for turn := range simulatedTurns {
			all = append(all, turnAt{agent, turn, at})
			switch n := r.IntN(100); {
			case n == 0:
				at += 2 * time.Hour
			case n < 5:
				at += time.Duration(6+r.IntN(40)) * time.Minute
			default:
				at += time.Duration(5+r.IntN(50)) * time.Second
			}
		}
	}
	slices.SortFunc(all, func(a, b turnAt) int { return cmp.Compare(a.at, b.at) })
	return all
}

// vendorCache is what an account has in its cache, and what its calls have found there.
type vendorCache struct {
	rules  cacheRules
	used   map[string]time.Time // the last use, by what begins a request
	tokens map[string]int64
	minute time.Time
	calls  map[string]int // of the minute, by what chooses the machine
}

// call returns how many tokens of a request are cached, and caches it.
func (c *vendorCache) call(agent int, input int64) (read int64) {
	now := time.Now()
	if m := now.Truncate(time.Minute); m != c.minute {
		c.minute, c.calls = m, make(map[string]int)
	}
	machine := 0
	if c.rules.burst > 0 {
		key := "" // half of the agents name their conversation, as prompt_cache_key
		if agent%2 == 0 {
			key = fmt.Sprint(agent)
		}
		machine = c.calls[key] / c.rules.burst
		c.calls[key]++
	}
	for _, part := range []string{"", fmt.Sprint(agent)} { // the instructions, and the conversation
		name := fmt.Sprint(part, " ", machine)
		if n := c.tokens[name]; n > 0 && now.Sub(c.used[name]) <= c.rules.life {
			read = max(read, min(n, input)/c.rules.step*c.rules.step)
		}
		c.used[name], c.tokens[name] = now, input
		if part == "" {
			c.tokens[name] = instructionTokens
		}
	}
	if read < c.rules.least {
		return 0
	}
	return read
}

// caches are those of some accounts, with the input of all calls.
type caches struct {
	accounts     map[string]*vendorCache
	rules        cacheRules
	read, input  int64
	found, later int // calls that found their turn before, and those that had one
}

func (c *caches) call(account string, t turnAt) (input int64) {
	if c.accounts == nil {
		c.accounts = make(map[string]*vendorCache)
	}
	if c.accounts[account] == nil {
		c.accounts[account] = &vendorCache{rules: c.rules, used: make(map[string]time.Time), tokens: make(map[string]int64)}
	}
	input = instructionTokens + int64(t.turn+1)*turnTokens
	read := c.accounts[account].call(t.agent, input)
	c.read, c.input = c.read+read, c.input+input
	if t.turn > 0 {
		c.later++
		if read >= (input-turnTokens)/c.rules.step*c.rules.step {
			c.found++
		}
	}
	return input
}

func (c *caches) share() float64 { return float64(c.read) / float64(c.input) }

// requestOf is the request of a turn: all agents have the same instructions.
func requestOf(rules cacheRules, t turnAt) []byte {
	var messages []string
	for i := range t.turn + 1 {
		if i > 0 {
			messages = append(messages, `{"role":"assistant","content":"ok"}`)
		}
		mark := ""
		if i == t.turn {
			mark = rules.mark
		}
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"agent %d says %d"%s}]}`, t.agent, i, mark))
	}
	if rules.mark == "" {
		messages = slices.Insert(messages, 0, `{"role":"system","content":"You are an agent."}`)
	}
	return fmt.Appendf(nil, `{"model":"pool","system":"You are an agent.","messages":[%s]}`, strings.Join(messages, ","))
}

// Eight accounts, of which one dies and returns and another is at its limit at times, cache nearly as
// much of what 200 agents send as a single account would. By chance, one turn in eight is where its
// conversation is cached.
func TestCachesOfManyAccountsServeAsThoseOfOne(t *testing.T) {
	for name, rules := range vendors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				alias := &routing.Alias{Strategy: routing.ByWeight}
				resolver := &routing.Resolver{Catalog: new(catalog.Catalog), Aliases: map[string]*routing.Alias{"pool": alias}}
				for i := range simulatedAccounts {
					a := &providers.Account{Label: fmt.Sprint("a", i), Provider: "vendor", Models: []string{rules.model}}
					a.ID[0] = byte(i)
					resolver.Accounts = append(resolver.Accounts, a)
					alias.Models = append(alias.Models, &routing.Choice{Model: a.Label + "/" + rules.model})
				}
				targets, _, err := resolver.Resolve("pool")
				if err != nil {
					t.Fatal(err)
				}
				turns := schedule(rand.New(rand.NewPCG(5, 6)))
				index, health := new(lineage.Index), routing.Health{Breakers: new(shared.LocalBreakers), Loads: new(routing.Loads)}
				pool, single, random := &caches{rules: rules}, &caches{rules: rules}, &caches{rules: rules}
				lost, begun := 0, time.Now()
				for _, next := range turns {
					time.Sleep(time.Until(begun.Add(next.at)))
					single.call("one", next)
					random.call(fmt.Sprint(rand.N(simulatedAccounts)), next)

					r := &storage.Record{ID: uuid.New(), Org: "org", Dialect: rules.dialect, Model: rules.model, CreatedAt: storage.Millis(time.Now())}
					reader := observe.NewRequestReader(rules.dialect)
					reader.Write(requestOf(rules, next))
					link := index.Join(r, reader.Outline(), uuid.Nil)
					ask := &routing.Ask{Record: r, Warm: func(t routing.Target) int64 {
						if target, tokens := link.Warm(r.CreatedAt); target == lineage.Hash(t.Name) {
							return tokens
						}
						return 0
					}}
					places, err := routing.Choose(targets, func() *routing.Ask { return ask }, health)
					if err != nil {
						t.Fatal(err)
					}
					answered := false
					for _, p := range places {
						minute := next.at % (20 * time.Minute) / time.Minute
						switch {
						case p.Account.Label == "a3" && next.at > 7*time.Minute && next.at < 11*time.Minute: // it is dead
							health.Failed(p.Circuit)
							continue
						case p.Account.Label == "a5" && minute == 9:
							health.Limited(p.Circuit, 20*time.Second)
							continue
						}
						health.Succeeded(p.Circuit)
						health.Answered(p.Circuit, time.Second, 10)
						r.Usage.Input = plugins.Known(pool.call(p.Account.Label, next))
						link.Answered(r, lineage.Hash(p.Account.Label), lineage.Hash(p.Name), storage.Body{})
						answered = true
						break
					}
					if !answered {
						lost++
					}
					reader.Free()
				}
				t.Logf("cached: %.4f, at one account %.4f, at random %.4f; turns found: %d, %d, %d of %d", pool.share(), single.share(), random.share(), pool.found, single.found, random.found, single.later)
				if lost > 0 || pool.share() < single.share()-0.02 {
					t.Errorf("%d calls are lost, and %d accounts serve %.4f of the input from caches, one %.4f", lost, simulatedAccounts, pool.share(), single.share())
				}
				if part := float64(random.found) / float64(single.found); rules.burst == 0 && math.Abs(part-1.0/simulatedAccounts) > 0.02 {
					t.Errorf("at random, %.3f of the turns are found that one account finds", part)
				}
			})
		})
	}
}
