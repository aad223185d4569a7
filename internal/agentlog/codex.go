package agentlog

import (
	"path/filepath"
	"strings"
	"unique"

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
	read: readCodex,
}

// codexSession is what the lines of a session say about later ones.
type codexSession struct {
	Common Call   // what its calls have in common
	Origin string // the id of the session that makes the calls, which may be an earlier one
	Total  string // what the session has used up to the last call, as JSON
}

// readCodex reads the calls of a session, which may begin with those of the session that it
// continues.
func readCodex(f *file) {
	s := &f.Codex
	for line := range f.lines(`"token_count"`, `"turn_context"`, `"session_meta"`) {
		at, payload := line.Get("timestamp"), line.Get("payload")
		switch line.Get("type").Str {
		case "session_meta":
			// A fork begins with the lines of the session that it continues, some with new times:
			// https://github.com/ryoppippi/ccusage/issues/1370
			if s.Origin = unique.Make(payload.Get("id").Str).Value(); s.Common.Session != "" {
				continue
			}
			c := Call{
				Session: s.Origin, Project: payload.Get("cwd").Str, Branch: payload.Get("git.branch").Str,
				Provider: payload.Get("model_provider").Str,
			}
			if source := payload.Get("source.subagent"); source.Exists() { // a thread of its own
				c.SubAgent = c.Session
				c.Session = firstText(source.Get("thread_spawn.parent_thread_id"), gjson.Result{Str: c.Session})
			}
			s.Common = internTexts(c)
		case "turn_context":
			c := s.Common
			c.Model = firstText(payload.Get("model"), gjson.Result{Str: c.Model})
			c.Project = firstText(payload.Get("cwd"), gjson.Result{Str: c.Project})
			s.Common = internTexts(c)
		case "event_msg":
			info := payload.Get("info")
			now, last := info.Get("total_token_usage"), info.Get("last_token_usage")
			if payload.Get("type").Str != "token_count" || !now.IsObject() || now.Raw == s.Total {
				continue
			}
			c := s.Common
			c.At, c.ID = timeOf(at), s.Origin+now.Raw
			if c.Usage = codexUsage(last); !last.IsObject() {
				c.Usage = usageSince(codexUsage(now), codexUsage(gjson.Parse(s.Total)))
			}
			s.Total = strings.Clone(now.Raw)
			f.add(c)
		}
	}
}

func codexUsage(v gjson.Result) plugins.Usage {
	return plugins.Usage{
		Input: tokenCount(v.Get("input_tokens")), CacheRead: tokenCount(v.Get("cached_input_tokens")), CacheWrite: tokenCount(v.Get("cache_write_input_tokens")),
		Output: tokenCount(v.Get("output_tokens")), Reasoning: tokenCount(v.Get("reasoning_output_tokens")),
	}
}

// usageSince returns the difference between two totals of a session. If a total is smaller than
// before, the totals were reset, and the later one is the difference.
func usageSince(now, before plugins.Usage) plugins.Usage {
	if now.Input.N < before.Input.N || now.CacheRead.N < before.CacheRead.N || now.CacheWrite.N < before.CacheWrite.N || now.Output.N < before.Output.N || now.Reasoning.N < before.Reasoning.N {
		return now
	}
	now.Input.N -= before.Input.N
	now.CacheRead.N -= before.CacheRead.N
	now.CacheWrite.N -= before.CacheWrite.N
	now.Output.N -= before.Output.N
	now.Reasoning.N -= before.Reasoning.N
	return now
}
