// Package agentlog reads what coding agents on this machine have written about their calls of
// models. It changes nothing.
//
// An agent is an entry of Agents, in a file of its own. Its lines or files become Calls. A call
// that several lines or files repeat is one Call. A Reader remembers in an index what it has read,
// and reads only what agents have added since.
package agentlog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weirhq/weir/plugins"
)

// Call is a call of a model.
type Call struct {
	ID       string // tells the call from all others, and stays when it is read again
	Agent    string // the agent's title
	At       time.Time
	Provider string // "" if the file does not name one
	Model    string
	Session  string
	Project  string // the folder in which the agent ran
	Branch   string // of Git, "" if unknown
	SubAgent string // the agent that made the call, "" for the user's session itself
	Tier     string // the service tier, "" for the standard one
	Usage    plugins.Usage
	// Beside is what the provider bills besides Usage, nil for nothing.
	Beside *plugins.Billed
}

// grow takes over what a repetition of the call has used, and returns whether that is more. The one
// with the longest output counts, as an agent may write a call while its answer comes in.
func (c *Call) grow(again *Call) bool {
	if again.Usage.Output.N <= c.Usage.Output.N {
		return false
	}
	c.Usage, c.Beside = again.Usage, again.Beside
	return true
}

// callSet has calls by their ids.
type callSet map[string]*Call

// add adds a call, and returns it as it is in the set then, or nil if that changes nothing.
func (s callSet) add(c *Call) *Call {
	before := s[c.ID]
	if before == nil {
		s[c.ID] = c
		return c
	}
	grown := *before
	if !grown.grow(c) {
		return nil
	}
	s[c.ID] = &grown
	return &grown
}

// sorted returns the calls, the earliest first.
func (s callSet) sorted() []*Call {
	return slices.SortedFunc(maps.Values(s), func(a, b *Call) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
}

// Agent is a program whose files are read.
type Agent struct {
	Title string
	// folders are where the files may be. One that does not exist is left out.
	folders func() []string
	// matches tells whether a file has calls.
	matches func(path string) bool
	// foreign says why a file cannot be read that another version of the agent has written, ""
	// for all other files.
	foreign func(path string) string
	// read adds the calls of a file to it. It yields the lines of a file that were not read yet.
	read func(f *file)
}

// Agents are the agents by the order in which they are listed.
var Agents = []*Agent{claude, codex, opencode, gemini}
