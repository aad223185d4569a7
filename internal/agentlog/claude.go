package agentlog

import (
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// claude writes a line for each part of an answer, all with the answer's id. A session that is
// resumed copies lines to a new file, and a sub-agent has a file of its own.
// https://code.claude.com/docs/en/data-usage
var claude = &Agent{
	Title: "Claude Code",
	folders: func() []string {
		return []string{
			filepath.Join(inHome("CLAUDE_CONFIG_DIR", ".claude"), "projects"),
			filepath.Join(inHome("XDG_CONFIG_HOME", ".config"), "claude", "projects"),
		}
	},
	matches: func(path string) bool { return strings.HasSuffix(path, ".jsonl") },
	read: func(f *file) {
		for line := range f.lines(`"usage"`) {
			var at, kind, session, cwd, branch, request, agent, message, sidechain gjson.Result
			fields := map[string]*gjson.Result{
				"timestamp": &at, "type": &kind, "sessionId": &session, "cwd": &cwd, "gitBranch": &branch,
				"requestId": &request, "agentId": &agent, "message": &message, "isSidechain": &sidechain,
			}
			line.ForEach(func(name, value gjson.Result) bool {
				if to := fields[name.Str]; to != nil {
					*to = value
				}
				return true
			})
			if kind.Str != "assistant" || !message.Get("usage").IsObject() {
				continue
			}
			if message.Get("model").Str == "<synthetic>" { // written by Claude Code itself
				continue
			}
			seen := observe.Read(plugins.Messages, "anthropic", nil, []byte(message.Raw))
			id := ""
			if seen.ResponseID != "" {
				id = seen.ResponseID + " " + request.Str
			}
			subAgent := agent.Str
			if subAgent == "" && sidechain.Bool() {
				subAgent = "sidechain" // versions before 2.0 name none
			}
			f.add(Call{
				At: timeOf(at), Provider: "anthropic", Model: seen.Model, Session: session.Str, Project: cwd.Str, Branch: branch.Str,
				SubAgent: subAgent, Tier: seen.ServiceTier, Usage: seen.Usage, Beside: seen.Beside, ID: id,
			})
		}
	},
}
