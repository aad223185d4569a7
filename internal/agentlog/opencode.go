package agentlog

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/weirhq/weir/plugins"
)

// opencode writes a file for each message.
// https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src/session/message-v2.ts
var opencode = &Agent{
	Title: "opencode",
	folders: func() []string {
		return []string{filepath.Join(inHome("XDG_DATA_HOME", ".local", "share"), "opencode")}
	},
	matches: func(path string) bool {
		return strings.HasSuffix(path, ".json") && strings.Contains(filepath.ToSlash(path), "/storage/message/")
	},
	foreign: func(path string) string {
		if filepath.Base(path) == "opencode.db" {
			return "opencode.db is the database of a newer opencode"
		}
		return ""
	},
	read: func(f *file) {
		m, ok := f.whole()
		tokens := m.Get("tokens")
		if !ok || m.Get("role").Str != "assistant" || !tokens.IsObject() || m.Get("error").Exists() && tokens.Get("output").Num == 0 {
			return
		}
		read, write, reasoning := count(tokens.Get("cache.read")), count(tokens.Get("cache.write")), count(tokens.Get("reasoning"))
		c := Call{
			Provider: m.Get("providerID").Str, Model: m.Get("modelID").Str, Session: m.Get("sessionID").Str,
			Project: first(m.Get("path.root"), m.Get("path.cwd")), id: m.Get("id").Str,
			// opencode counts what the cache served, and what was thought, apart.
			Usage: plugins.Usage{
				Input: count(tokens.Get("input")).Plus(read).Plus(write), CacheRead: read, CacheWrite: write,
				Output: count(tokens.Get("output")).Plus(reasoning), Reasoning: reasoning,
			},
		}
		if at := m.Get("time.created"); at.Num > 0 {
			c.At = time.UnixMilli(at.Int())
		}
		f.add(c)
	},
}
