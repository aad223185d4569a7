package agents

import (
	"fmt"
	"slices"
)

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
	life               string // how long the provider caches what the next call sends
	late, otherKey     bool   // the next call comes after that time, or has another key
	spawner            *Call
	last               *Call
	seen               []Message // the messages of last
	prefix             int       // tokens before the messages
	turns              int
	snapshots          []thread
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

func (t *thread) say(text string) {
	t.messages = append(t.messages, Message{Role: "user", Text: text})
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
		t.say(t.text(400))
	}
	for _, call := range answer.Calls {
		t.messages = append(t.messages, Message{Role: "tool", Text: t.text(1500), Of: call})
	}
}

// send sends the conversation, and adds the answer to it.
func (t *thread) send() {
	answer := Message{Role: "assistant"}
	calls := t.random.IntN(4)
	if calls == 0 || t.random.IntN(2) == 0 {
		answer.Text = t.text(500)
	}
	for range calls {
		answer.Calls = append(answer.Calls, t.tool("run", t.text(80)))
	}
	t.ask(answer)
}

func (t *thread) tool(name, argument string) ToolCall {
	return ToolCall{ID: fmt.Sprintf("call_%016x%08x", t.random.Uint64(), t.random.Uint32()), Name: name, Argument: argument}
}

// ask sends the conversation, and adds the answer.
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

// retry sends a call that fails, and must be sent again.
func (t *thread) retry() {
	saved := *t
	c := t.ask(Message{Role: "assistant"})
	c.Status, c.Usage, c.Miss, c.MissAt, c.Missed = 500, Usage{}, "", "", 0
	*t = saved
}

// compact has the conversation summarised, and goes on from the summary.
func (t *thread) compact() {
	t.say("Summarise what was said so far, and what is left to do.")
	summary := t.words.Text(2000)
	t.ask(Message{Role: "assistant", Text: summary})
	t.messages = nil
	t.say(summary)
}

// fork goes back to a turn, and says something else.
func (t *thread) fork(turn int) *thread {
	fork := t.snapshots[turn-1]
	fork.messages = slices.Clone(fork.messages)
	for _, call := range fork.messages[len(fork.messages)-1].Calls {
		fork.messages = append(fork.messages, Message{Role: "tool", Text: "The user interrupted this.", Of: call})
	}
	fork.say(t.words.Text(300))
	fork.snapshots = nil
	return &fork
}

// delegate has sub-agents work at the same time; one sub-agent hands its task on.
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
		sub.say(task)
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
