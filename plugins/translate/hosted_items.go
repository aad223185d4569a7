package translate

import (
	"encoding/json"
	"slices"
)

// Citation is the source in the web of a part of a text.
type Citation struct {
	// Start and End bound the part, in characters of the message's text.
	Start, End int64
	URL        string
	// Title is by default the URL: clients demand one.
	Title string
}

type urlCitation struct {
	Type       string `json:"type"`
	StartIndex int64  `json:"start_index"`
	EndIndex   int64  `json:"end_index"`
	URL        string `json:"url"`
	Title      string `json:"title"`
}

// Cite annotates the text of a message. Of a source that has no URL there is
// nothing the Responses API could say.
func (a *Assembler) Cite(key int, c Citation) {
	if c.URL == "" {
		return
	}
	if c.Title == "" {
		c.Title = c.URL
	}
	raw, _ := json.Marshal(urlCitation{"url_citation", c.Start, c.End, c.URL, c.Title}) // strings and numbers
	a.Annotation(key, raw)
}

// HostedCall is a call of a tool that the provider hosts, with its result.
type HostedCall struct {
	Failed bool
	// Queries and Sources are those of a web search; a source is a URL.
	Queries, Sources []string
	// Code and Logs are those of a code interpreter.
	Code, Logs string
}

// PendingCall is a call of a tool that the provider hosts, until its result comes.
type PendingCall struct {
	ID, Name string
	Input    []byte // JSON
}

// PendingCalls are the calls of an answer that have no result yet.
type PendingCalls []PendingCall

// Take removes and returns the call with an ID.
func (c *PendingCalls) Take(id string) (call PendingCall, ok bool) {
	i := slices.IndexFunc(*c, func(call PendingCall) bool { return call.ID == id })
	if i < 0 {
		return PendingCall{}, false
	}
	call = (*c)[i]
	*c = slices.Delete(*c, i, i+1)
	return call, true
}

type webSearchCall struct {
	Type   string       `json:"type"`
	Status string       `json:"status"`
	Action searchAction `json:"action"`
}

type searchAction struct {
	Type    string         `json:"type"`
	Query   string         `json:"query"`
	Queries []string       `json:"queries"`
	Sources []searchSource `json:"sources"`
}

type searchSource struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// WebSearch adds a search of the web.
func (a *Assembler) WebSearch(c HostedCall) {
	action := searchAction{Type: "search", Queries: c.Queries, Sources: []searchSource{}}
	if len(c.Queries) > 0 {
		action.Query = c.Queries[0]
	}
	for _, url := range c.Sources {
		action.Sources = append(action.Sources, searchSource{"url", url})
	}
	a.hosted(webSearchCall{"web_search_call", c.status(), action})
}

type codeInterpreterCall struct {
	Type        string      `json:"type"`
	Status      string      `json:"status"`
	Code        string      `json:"code"`
	ContainerID string      `json:"container_id"`
	Outputs     []logOutput `json:"outputs"`
}

type logOutput struct {
	Type string `json:"type"`
	Logs string `json:"logs"`
}

// CodeInterpreter adds code that was run.
func (a *Assembler) CodeInterpreter(c HostedCall) {
	a.hosted(codeInterpreterCall{"code_interpreter_call", c.status(), c.Code, "", []logOutput{{"logs", c.Logs}}})
}

func (a *Assembler) hosted(item any) {
	raw, _ := json.Marshal(item) // strings and lists of them
	a.Item(raw)
}

func (c *HostedCall) status() string {
	if c.Failed {
		return statusFailed
	}
	return statusCompleted
}

// WebSearch is the policy for the web search, which has several versions.
var WebSearch = Policy{
	"tools.web_search":                    Translate,
	"tools.web_search_2025_08_26":         Translate,
	"tools.web_search_preview":            Translate,
	"tools.web_search_preview_2025_03_11": Translate,
}
