package agents

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/weirhq/weir/test/prose"
)

// Call is one call of a labelled session: what its client sends, what its provider
// answers, and what is true of the call.
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

// Message is one of a conversation.
type Message struct {
	Role  string // user, assistant or tool
	Text  string
	Calls []ToolCall
	Of    ToolCall // the call that a tool's message is the result of
}

// ToolCall is a call of a tool.
type ToolCall struct{ ID, Name, Argument string }

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
	tasks  []string        // tasks that more than one session has
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
	main.say(task)
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
