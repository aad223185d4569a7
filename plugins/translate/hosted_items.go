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

// Cite annotates the text of a message. Of a source that has no URL there is
// nothing the Responses API could say.
func (a *Assembler) Cite(key int, c Citation) {
	if c.URL == "" {
		return
	}
	if c.Title == "" {
		c.Title = c.URL
	}
	raw, _ := json.Marshal(object{ // strings and numbers
		"type": "url_citation", "start_index": c.Start, "end_index": c.End, "url": c.URL, "title": c.Title,
	})
	a.Annotation(key, raw)
}

// object is a JSON object.
type object map[string]any

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

// WebSearch adds a search of the web.
func (a *Assembler) WebSearch(c HostedCall) {
	sources := make([]object, len(c.Sources))
	for i, url := range c.Sources {
		sources[i] = object{"type": "url", "url": url}
	}
	query := ""
	if len(c.Queries) > 0 {
		query = c.Queries[0]
	}
	a.hosted(object{
		"type": "web_search_call", "status": c.status(),
		"action": object{"type": "search", "query": query, "queries": c.Queries, "sources": sources},
	})
}

// CodeInterpreter adds code that was run.
func (a *Assembler) CodeInterpreter(c HostedCall) {
	a.hosted(object{
		"type": "code_interpreter_call", "status": c.status(), "code": c.Code, "container_id": "",
		"outputs": []object{{"type": "logs", "logs": c.Logs}},
	})
}

func (a *Assembler) hosted(item object) {
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
