package agents

import "github.com/weirhq/weir/plugins"

// Client is the program that an agent is.
type Client struct {
	Dialect plugins.Dialect
	// Headers is how the client names sessions and agents: "claude" as Claude Code,
	// "codex" as Codex, "" not at all.
	Headers string
	// Gateway is true for a client that calls the gateway; Provider is then the gateway's target.
	Gateway         bool
	Provider, Model string
	Stream          bool
}

// Clients are the clients of labelled sessions.
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
