// Package agents makes the requests of agents that work at the same time. Each agent
// sends its whole conversation with every turn: with tools, edits of messages,
// compaction, and sub-agents. A Workload is many agents of one format. Sessions have all formats,
// and are labelled with what a record of each call must say.
package agents

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/weirhq/weir/test/prose"
)

// Turn is one call of Chat Completions.
type Turn struct {
	// Conversation is the number of the conversation, of an agent or a sub-agent.
	Conversation int
	// Request and Answer are the bodies, both JSON.
	Request, Answer []byte
	// New is how many bytes of the request are of messages, instructions and tools that
	// no request before it had.
	New int
}

// Workload is what a generator makes.
type Workload struct {
	Agents, Turns int // turns of each agent, without the turns of sub-agents
	TurnBytes     int // what a turn adds to a conversation, about
	Seed          uint64
}

// Default is 16 conversations of 50 turns that grow to 300 KB.
var Default = Workload{Agents: 16, Turns: 50, TurnBytes: 5600, Seed: 1}

type message struct {
	text []byte // JSON
	sent bool
}

type conversation struct {
	number   int
	turns    int // made so far
	limit    int
	system   *message
	messages []*message
}

type generator struct {
	Workload
	words  *prose.Writer
	random *rand.Rand
	tools  *message
	system [2]*message // prompts of agents, and of sub-agents
	number int
	all    []Turn
}

// Generate makes the turns in the order in which they are sent.
func (w Workload) Generate() []Turn {
	g := &generator{Workload: w, words: prose.New(w.Seed), random: rand.New(rand.NewPCG(w.Seed, 2))}
	for i := range g.system {
		g.system[i] = &message{text: Encode(map[string]any{"role": "system", "content": g.words.Text(8 << 10)})}
	}
	var tools []map[string]any
	for i := range 12 {
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{
			"name": fmt.Sprintf("tool_%d", i), "description": g.words.Text(800), "parameters": map[string]any{"type": "object"},
		}})
	}
	g.tools = &message{text: Encode(tools)}
	live := make([]*conversation, w.Agents)
	for i := range live {
		live[i] = g.begin(g.system[0], w.Turns, g.words.Text(300))
	}
	for len(live) > 0 {
		i := g.random.IntN(len(live))
		g.turn(live[i])
		if live[i].turns == live[i].limit {
			live = append(live[:i], live[i+1:]...)
		}
	}
	return g.all
}

func (g *generator) begin(system *message, turns int, task string) *conversation {
	c := &conversation{number: g.number, limit: turns, system: system}
	c.add("user", task)
	g.number++
	return c
}

// turn sends a request, and adds the answer and the tool's result to the conversation.
func (g *generator) turn(c *conversation) {
	c.turns++
	say := g.words.Text(g.TurnBytes / 8)
	g.all = append(g.all, g.request(c, say))
	c.add("assistant", say)
	c.add("tool", g.words.Text(g.TurnBytes*3/4))
	switch n := len(c.messages); {
	case c.system == g.system[1]: // a sub-agent
	case c.turns%17 == 0: // an old result is taken out
		c.messages[g.random.IntN(n-2)] = &message{text: Encode(map[string]any{"role": "tool", "content": "removed"})}
	case c.turns == 35 && c.number%4 == 0: // compaction
		c.messages = nil
		c.add("user", g.words.Text(3000))
	case c.turns%10 == 0:
		task := g.words.Text(400)
		c.add("assistant", task)
		for sub := g.begin(g.system[1], 3, task); sub.turns < sub.limit; {
			g.turn(sub)
		}
	}
}

func (g *generator) request(c *conversation, answer string) Turn {
	t := Turn{Conversation: c.number}
	put := func(before string, m *message) {
		t.Request = append(append(t.Request, before...), m.text...)
		if !m.sent {
			t.New += len(m.text)
			m.sent = true
		}
	}
	put(`{"model":"gpt-5","messages":[`, c.system)
	for _, m := range c.messages {
		put(",", m)
	}
	put(`],"tools":`, g.tools)
	t.Request = append(t.Request, `,"max_completion_tokens":4096}`...)
	t.Answer = Encode(map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", len(g.all)), "object": "chat.completion", "model": "gpt-5",
		"choices": []map[string]any{{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": answer}}},
		"usage":   map[string]any{"prompt_tokens": len(t.Request) / 4, "completion_tokens": len(answer) / 4, "total_tokens": (len(t.Request) + len(answer)) / 4},
	})
	return t
}

func (c *conversation) add(role, text string) {
	c.messages = append(c.messages, &message{text: Encode(map[string]any{"role": role, "content": text})})
}

// Encode writes a value that always marshals as JSON.
func Encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // these values always marshal
	}
	return raw
}
