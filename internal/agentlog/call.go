// Package agentlog reads what coding agents on this machine have written about their calls of
// models. It changes nothing.
//
// An agent is an entry of Agents, in a file of its own. Its lines or files become Calls. A call
// that several lines or files repeat is one Call.
package agentlog

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/plugins"
)

// Call is a call of a model.
type Call struct {
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

	id string // equal for repetitions of one call, "" if there are none
}

// ID tells the call from all others, also when it is read again with what it has used since.
func (c *Call) ID() string {
	if c.id != "" {
		return c.Agent + " " + c.id
	}
	return fmt.Sprint(c.Agent, " ", c.Session, " ", c.At.UnixNano(), " ", c.Model, " ", c.Usage.Output.N)
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
	// read adds the calls of a file to it.
	read func(f *file)
}

// Agents are the agents by the order in which they are listed.
var Agents = []*Agent{claude, codex, opencode, gemini}
