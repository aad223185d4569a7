package agentlog

import (
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// codex writes what a session has used so far after each call, and once more when only the limits
// of the subscription have changed.
// https://github.com/openai/codex/blob/main/codex-rs/protocol/src/protocol.rs
var codex = &Agent{
	Title: "Codex",
	folders: func() []string {
		home := inHome("CODEX_HOME", ".codex")
		return []string{filepath.Join(home, "sessions"), filepath.Join(home, "archived_sessions")}
	},
	matches: func(path string) bool {
		return strings.HasPrefix(filepath.Base(path), "rollout-") && strings.HasSuffix(path, ".jsonl")
	},
	foreign: func(path string) string {
		if strings.HasSuffix(path, ".jsonl.zst") {
			return "a file is compressed"
		}
		return ""
	},
	read: func(f *file) {
		var c Call // what all calls that follow have in common
		var total gjson.Result
		for line := range f.lines(`"token_count"`, `"turn_context"`, `"session_meta"`) {
			at, payload := line.Get("timestamp"), line.Get("payload")
			switch line.Get("type").Str {
			case "session_meta":
				if c.Session != "" {
					continue // the copy of another session's, which this one continues
				}
				c.Session, c.Project, c.Branch = payload.Get("id").Str, payload.Get("cwd").Str, payload.Get("git.branch").Str
				c.Provider, c.SubAgent = payload.Get("model_provider").Str, payload.Get("source.subagent").Exists()
			case "turn_context":
				c.Model = first(payload.Get("model"), gjson.Result{Str: c.Model})
				c.Project = first(payload.Get("cwd"), gjson.Result{Str: c.Project})
			case "event_msg":
				info := payload.Get("info")
				now, last := info.Get("total_token_usage"), info.Get("last_token_usage")
				if payload.Get("type").Str != "token_count" || !now.IsObject() || now.Raw == total.Raw {
					continue
				}
				c.At, c.id = timeOf(at), at.Str+now.Raw
				if c.Usage = codexUsage(last); !last.IsObject() {
					c.Usage = less(codexUsage(now), codexUsage(total))
				}
				total = now
				f.add(c)
			}
		}
	},
}

func codexUsage(v gjson.Result) plugins.Usage {
	return plugins.Usage{
		Input: count(v.Get("input_tokens")), CacheRead: count(v.Get("cached_input_tokens")),
		Output: count(v.Get("output_tokens")), Reasoning: count(v.Get("reasoning_output_tokens")),
	}
}

// less returns the part of a usage that an earlier one did not have. A count that has become
// smaller began anew.
func less(now, before plugins.Usage) plugins.Usage {
	for _, c := range []struct{ now, before *plugins.Count }{
		{&now.Input, &before.Input}, {&now.CacheRead, &before.CacheRead}, {&now.Output, &before.Output}, {&now.Reasoning, &before.Reasoning},
	} {
		if c.now.N >= c.before.N {
			c.now.N -= c.before.N
		}
	}
	return now
}
