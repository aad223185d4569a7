package observe

import (
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Runs is agents that run at the provider: OpenAI's Assistants, the sessions of its Agents API, and
// those of Anthropic's Managed Agents. A run that streams reports its usage in the event that ends it;
// any other has none yet when it is created. A session reports all that it has used so far, and may use
// more later.
// https://platform.openai.com/docs/api-reference/runs
// https://developers.openai.com/api/reference/resources/beta/subresources/agents
// https://platform.claude.com/docs/en/managed-agents/events-and-streaming
func init() {
	Register(Dialect{
		Name:      plugins.Runs,
		Operation: "invoke_agent",
		Paths:     []string{"/runs", "/submit_tool_outputs", "/agents/sessions", "/v1/sessions"},
		Providers: []string{"openai", "azure", "anthropic"},
		Polled: []string{
			"/runs/{id}",
			"/agents/sessions/{id}", "/agents/sessions/{id}/events",
			"/v1/sessions/{id}", "/v1/sessions/{id}/events/stream",
		},
		Signs:   []string{`object:"thread.run"`},
		Request: tables(modelRequest, agentModel),
		Response: tables(runUsage.Under("usage"), errorFields.Under("error"), errorFields.Under("last_error"), toolCalls.Under("delta.step_details"),
			agentSession, agentSession.Under("session"), responsesUsage.Under("session.usage"), Table{
				"model":                      Model,
				"delta.content.#.text.value": Content,
			}),
		Whole: responsesUsage.Under("usage"), // in an event it is the usage of a turn
		Variants: map[string]Table{"anthropic": tables(messagesTokens.Under("usage"), Table{
			"usage.server_tool_use.web_search_requests": WebSearches,
			"usage.list_cost.amount":                    CostInCents,
			"usage.list_cost.currency":                  Currency,
		})},
		Transcript: transcript.Runs,
	})
}

// agentModel is where a session has the model of its agent: OpenAI as a name, Anthropic as an object.
var agentModel = Table{"agent.model": Model, "agent.model.id": Model}

// agentSession is a session of OpenAI's Agents API.
var agentSession = tables(agentModel, Table{"id": ResponseID, "status": FinishReason})

// runUsage is the usage of a run of the Assistants. The total says nothing more, and the events of a
// session have one for each turn.
var runUsage = Table{
	"prompt_tokens":                              Input,
	"prompt_token_details.cached_tokens":         CacheRead,
	"prompt_tokens_details.cached_tokens":        CacheRead,
	"completion_tokens":                          Output,
	"completion_tokens_details.reasoning_tokens": Reasoning,
}

// IsAgentSession reports whether a POST of Runs creates a session. Its tokens may be of several models,
// and its runtime costs, too: only the provider knows the cost.
func IsAgentSession(path string) bool {
	return strings.HasSuffix(strings.TrimSuffix(path, "/"), "/sessions")
}
