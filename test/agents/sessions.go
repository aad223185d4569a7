package agents

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/test/prose"
)

// Call is one call of a labelled session: what its client sends, what its provider
// answers, and what is true of it.
type Call struct {
	Client   *Client
	Provider string
	Model    string
	Path     string
	Header   http.Header
	Body     []byte
	// Answer is what the provider says, Status and Usage how it answers.
	Answer Message
	Status int
	Usage  Usage

	// Parent is the call that this one continues, Root the first call of the tree,
	// nil of that call itself, and Turn counts the calls of the conversation from 1.
	Parent, Root *Call
	Turn         int
	// Miss is why the provider's cache misses, "" where it does not, MissAt the part of
	// the request that has changed, and Missed how many tokens it does not serve.
	Miss, MissAt string
	Missed       int
	// Late is true of a call that is sent after the provider's cache has forgotten.
	Late bool

	number int
}

// Usage is what a provider reports, in tokens. Input includes what is read from its
// cache, and what is written to it.
type Usage struct{ Input, Cached, Written, Output int }

// Client is the program that an agent is.
type Client struct {
	Dialect plugins.Dialect
	// Headers is how the client names sessions and agents: "claude" as Claude Code,
	// "codex" as Codex, "" not at all.
	Headers string
	// Gateway is true of one that calls the gateway, whose target Provider is.
	Gateway         bool
	Provider, Model string
	Stream          bool
}

// Clients are those of labelled sessions.
var Clients = []Client{
	{Dialect: plugins.Messages, Headers: "claude", Provider: "anthropic", Model: "claude-sonnet-4-5", Stream: true},
	{Dialect: plugins.Responses, Headers: "codex", Provider: "openai", Model: "gpt-5", Stream: true},
	{Dialect: plugins.Chat, Provider: "openai", Model: "gpt-5"},
	{Dialect: plugins.Messages, Provider: "anthropic", Model: "claude-sonnet-4-5"},
	{Dialect: plugins.GenerateContent, Provider: "gemini", Model: "gemini-2.5-pro"},
	{Dialect: plugins.Messages, Headers: "claude", Gateway: true, Provider: "anthropic", Model: "claude-sonnet-4-5", Stream: true},
	{Dialect: plugins.Responses, Headers: "codex", Gateway: true, Provider: "openai", Model: "gpt-5", Stream: true},
	{Dialect: plugins.Responses, Provider: "openai", Model: "gpt-5"},
	{Dialect: plugins.Chat, Gateway: true, Provider: "gemini", Model: "gemini-2.5-pro"},
	{Dialect: plugins.Responses, Gateway: true, Provider: "anthropic", Model: "claude-sonnet-4-5", Stream: true},
}

// otherModel is what a session changes to.
var otherModel = map[string]string{"gpt-5": "gpt-5-mini", "claude-sonnet-4-5": "claude-haiku-4-5", "gemini-2.5-pro": "gemini-2.5-flash"}

// Causes are what makes the provider's cache miss in a labelled session.
var Causes = []string{"below_minimum", "never_marked", "model", "other_key", "tools_changed", "system_changed", "history_edited", "ttl"}

// possible reports whether a client can cause a miss.
func (c *Client) possible(cause string) bool {
	switch cause {
	case "never_marked":
		return c.Dialect == plugins.Messages
	case "other_key":
		return !c.Gateway || c.Dialect == plugins.Responses
	case "ttl":
		return c.Dialect != plugins.GenerateContent && c.Provider != "gemini"
	}
	return true
}

// Message is one of a conversation.
type Message struct {
	Role  string // user, assistant or tool
	Text  string
	Calls []ToolCall
	Of    ToolCall // that a tool's message is the result of
}

// ToolCall is a call of a tool.
type ToolCall struct{ ID, Name, Argument string }

// thread is a conversation of an agent under way.
type thread struct {
	*session
	agent, parentAgent string
	system             string
	tools              []string
	messages           []Message
	model              string
	key, cacheKey      string
	unmarked           bool
	life               string // of what the provider caches, as the next call asks for
	late, otherKey     bool   // the next call is behind that, or has another key
	spawner            *Call
	last               *Call
	seen               []Message // the messages of last
	prefix             int       // tokens of what stands before them
	turns              int
	snapshots          []thread
}

type session struct {
	*labeller
	Client *Client
	id     string
	short  bool // too short for a cache
	calls  []*Call
	root   *Call
}

type labeller struct {
	words  *prose.Writer
	random *rand.Rand
	number int
	system map[bool]string // by whether it is a sub-agent's
	tasks  []string        // that more than one session has
}

// Sessions makes labelled sessions that run at the same time, in the order in which
// their calls are sent: each client and cause in turn, with sub-agents, tools called
// at once, second tries, edits, forks, compactions, and first messages that others have.
func Sessions(seed uint64, count int) []*Call {
	g := newLabeller(seed, count)
	var live [][]*Call
	for i := range count {
		live = append(live, g.session(i))
	}
	var all []*Call
	for len(live) > 0 {
		i := g.random.IntN(len(live))
		all, live[i] = append(all, live[i][0]), live[i][1:]
		if len(live[i]) == 0 {
			live = slices.Delete(live, i, i+1)
		}
	}
	return all
}

func newLabeller(seed uint64, count int) *labeller {
	g := &labeller{words: prose.New(seed), random: rand.New(rand.NewPCG(seed, 3)), system: make(map[bool]string)}
	for _, sub := range []bool{false, true} {
		g.system[sub] = g.words.Text(9000)
	}
	for range 1 + count/10 {
		g.tasks = append(g.tasks, g.words.Text(200))
	}
	return g
}

func (g *labeller) session(n int) []*Call {
	s := &session{labeller: g, Client: &Clients[n%len(Clients)], id: fmt.Sprintf("session-%d", n)}
	cause := Causes[(n+n/len(Clients))%len(Causes)]
	for !s.Client.possible(cause) {
		cause = Causes[(slices.Index(Causes, cause)+1)%len(Causes)]
	}
	s.short = cause == "below_minimum"
	main := s.thread("main", g.system[false])
	main.unmarked = cause == "never_marked"
	task := g.words.Text(300)
	if n%3 == 0 {
		task = g.tasks[n%len(g.tasks)]
	}
	main.say("user", task)
	turns := 14
	if s.short {
		turns = 5
	}
	for turn := 1; turn <= turns; turn++ {
		switch turn {
		case 3:
			main.retry()
		case 7:
			if !s.short && !main.unmarked {
				main.change(cause)
			}
		case 11:
			if n%2 == 1 {
				main.change("history_edited")
			}
		case 13:
			if n%4 == 0 {
				main.compact()
			}
		}
		main.send()
		if turn == 4 && !s.short {
			main.delegate(2, n%3 == 1)
		} else {
			main.work()
		}
	}
	if n%2 == 0 && !s.short {
		fork := main.fork(2)
		for range 3 {
			fork.send()
			fork.work()
		}
	}
	return s.calls
}

func (s *session) thread(agent, system string) *thread {
	t := &thread{session: s, agent: agent, model: s.Client.Model, key: "key-of-" + s.Client.Provider, system: system}
	if s.short {
		t.system = system[:400]
	} else {
		for i := range 6 {
			t.tools = append(t.tools, fmt.Sprint("tool_", i, " ", system[i*300:(i+1)*300]))
		}
	}
	if s.Client.Headers == "codex" {
		t.cacheKey = s.id
	} else if s.Client.Gateway && s.Client.Provider == "anthropic" {
		t.cacheKey = "application"
	}
	return t
}

func (t *thread) say(role, text string) {
	t.messages = append(t.messages, Message{Role: role, Text: text})
}

// text has as many bytes, or few in a short session.
func (t *thread) text(n int) string {
	if t.short {
		n = min(n, 60)
	}
	return t.words.Text(n)
}

// work calls tools, up to three at once, or asks the user.
func (t *thread) work() {
	answer := &t.messages[len(t.messages)-1]
	if len(answer.Calls) == 0 {
		t.say("user", t.text(400))
	}
	for _, call := range answer.Calls {
		t.messages = append(t.messages, Message{Role: "tool", Text: t.text(1500), Of: call})
	}
}

// send sends the conversation, and adds the answer to it.
func (t *thread) send() *Call {
	answer := Message{Role: "assistant"}
	calls := t.random.IntN(4)
	if calls == 0 || t.random.IntN(2) == 0 {
		answer.Text = t.text(500)
	}
	for range calls {
		answer.Calls = append(answer.Calls, t.tool("run", t.text(80)))
	}
	return t.ask(answer)
}

func (t *thread) tool(name, argument string) ToolCall {
	return ToolCall{ID: fmt.Sprintf("call_%016x%08x", t.random.Uint64(), t.random.Uint32()), Name: name, Argument: argument}
}

// ask sends the conversation, which is answered so.
func (t *thread) ask(answer Message) *Call {
	t.turns++
	t.number++
	c := &Call{number: t.number, Client: t.Client, Provider: t.Client.Provider, Model: t.model, Answer: answer, Status: 200, Parent: t.last, Root: t.session.root, Turn: t.turns}
	if t.last == nil {
		c.Parent = t.spawner
	}
	if t.session.root == nil {
		t.session.root = c
	}
	prefix := t.render(c)
	tokens := prefix + size(t.messages)
	c.Usage = Usage{Input: tokens, Output: size([]Message{answer})}
	if t.last != nil {
		t.cache(c, prefix)
	}
	if c.Provider == "anthropic" && !t.unmarked && !t.short {
		c.Usage.Written = c.Usage.Input - c.Usage.Cached
	}
	t.late, t.life, t.otherKey = t.life != "", "", false
	t.last, t.seen, t.prefix = c, slices.Clone(t.messages), prefix
	t.calls = append(t.calls, c)
	t.messages = append(t.messages, answer)
	t.snapshots = append(t.snapshots, *t)
	t.snapshots[len(t.snapshots)-1].messages = slices.Clone(t.messages)
	return c
}

// size is what a provider counts of messages, in tokens.
func size(messages []Message) (tokens int) {
	for _, m := range messages {
		tokens += 4 + len(m.Text)/4
		for _, call := range m.Calls {
			tokens += 10 + len(call.Argument)/4
		}
	}
	return tokens
}

// cache says what the provider's cache serves of a call, and why no more.
func (t *thread) cache(c *Call, prefix int) {
	before := t.last
	c.Late = t.late
	cacheable := min(before.Usage.Input, c.Usage.Input)
	same := 0
	for same < min(len(t.seen), len(t.messages)) && equal(t.seen[same], t.messages[same]) {
		same++
	}
	switch {
	case t.short:
		c.Miss = "below_minimum"
	case t.unmarked:
		c.Miss = "never_marked"
	case before.Model != t.model:
		c.Miss = "model"
	case t.otherKey:
		c.Miss = "other_key"
	case prefix > t.prefix && len(t.tools) > 6 && !strings.Contains(string(before.Body), "tool_6"):
		c.Miss, c.MissAt = "tools_changed", "tools"
	case prefix != t.prefix:
		c.Miss, c.MissAt = "system_changed", "system"
	case same < len(t.seen):
		c.Miss, c.MissAt = "history_edited", t.Client.at(t.messages, same)
		c.Usage.Cached = prefix + size(t.messages[:same])
	case t.late:
		c.Miss = "ttl"
	default:
		c.Usage.Cached = cacheable
	}
	if c.Provider != "anthropic" { // which others round down
		c.Usage.Cached -= c.Usage.Cached % 128
	}
	c.Missed = cacheable - c.Usage.Cached
	if c.Missed < 128 || 10*c.Missed < cacheable {
		c.Miss, c.MissAt, c.Missed = "", "", 0
	}
}

func equal(a, b Message) bool { return a.Text == b.Text && slices.Equal(a.Calls, b.Calls) }

// change does what makes the provider's cache miss the next call.
func (t *thread) change(cause string) {
	switch cause {
	case "model":
		t.model = otherModel[t.model]
	case "other_key":
		t.key, t.cacheKey, t.otherKey = t.key+"-2", t.cacheKey+"-2", true
	case "tools_changed":
		t.tools = append(slices.Clone(t.tools), "tool_6 "+t.words.Text(300))
	case "system_changed":
		t.system = "Today is Tuesday. " + t.system
	case "ttl":
		t.life = "1ms"
	case "history_edited":
		i := 1 + t.random.IntN(len(t.messages)/3)
		t.messages[i].Text = "This was removed."
	}
}

// retry sends a call that fails, and must be sent again.
func (t *thread) retry() {
	saved := *t
	c := t.ask(Message{Role: "assistant"})
	c.Status, c.Usage, c.Miss, c.MissAt, c.Missed = 500, Usage{}, "", "", 0
	*t = saved
}

// compact has the conversation summarised, and goes on from the summary.
func (t *thread) compact() {
	t.say("user", "Summarise what was said so far, and what is left to do.")
	summary := t.words.Text(2000)
	t.ask(Message{Role: "assistant", Text: summary})
	t.messages = nil
	t.say("user", summary)
}

// fork goes back to a turn, and says something else.
func (t *thread) fork(turn int) *thread {
	fork := t.snapshots[turn-1]
	fork.messages = slices.Clone(fork.messages)
	for _, call := range fork.messages[len(fork.messages)-1].Calls {
		fork.messages = append(fork.messages, Message{Role: "tool", Text: "The user interrupted this.", Of: call})
	}
	fork.say("user", t.words.Text(300))
	fork.snapshots = nil
	return &fork
}

// delegate has sub-agents work at the same time; one of them hands its task on.
func (t *thread) delegate(count int, nested bool) {
	t.messages = append(t.messages[:len(t.messages)-1], Message{Role: "assistant"})
	answer := &t.messages[len(t.messages)-1]
	var subs []*thread
	for i := range count {
		task := t.words.Text(350)
		if i == 0 && len(t.tasks) > 1 && t.agent == "main" {
			task = "Look for this. " + t.tasks[t.random.IntN(len(t.tasks))]
		}
		answer.Calls = append(answer.Calls, t.tool("Task", task))
		sub := t.thread(fmt.Sprintf("%s.%d", t.agent, i+1), t.labeller.system[true])
		sub.parentAgent, sub.spawner, sub.unmarked = t.agent, t.last, t.unmarked
		sub.say("user", task)
		subs = append(subs, sub)
	}
	t.last.Answer = *answer
	for turn := range 3 {
		for i, sub := range subs {
			sub.send()
			if nested && i == 0 && turn == 1 {
				sub.delegate(1, false)
			} else {
				sub.work()
			}
		}
	}
	for _, call := range answer.Calls {
		t.messages = append(t.messages, Message{Role: "tool", Text: t.text(800), Of: call})
	}
}
