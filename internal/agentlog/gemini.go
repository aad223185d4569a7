package agentlog

import (
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// gemini writes a file for each session: a JSON object with the messages, or since 2026 a line for
// each message. It names a project by its folder in ~/.gemini/tmp.
// https://geminicli.com/docs/cli/session-management
var gemini = &Agent{
	Title: "Gemini CLI",
	folders: func() []string {
		return []string{filepath.Join(inHome("GEMINI_CLI_HOME"), ".gemini", "tmp")}
	},
	matches: func(path string) bool {
		return filepath.Base(filepath.Dir(path)) == "chats" && (strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".jsonl"))
	},
	read: func(f *file) {
		project := filepath.Base(filepath.Dir(filepath.Dir(f.Path)))
		session := strings.TrimSuffix(filepath.Base(f.Path), filepath.Ext(f.Path))
		message := func(m gjson.Result) {
			tokens := m.Get("tokens")
			if m.Get("type").Str != "gemini" || !tokens.IsObject() {
				return
			}
			thoughts := tokenCount(tokens.Get("thoughts"))
			f.add(Call{
				At: timeOf(m.Get("timestamp")), Provider: "gemini", Model: m.Get("model").Str, Session: session, Project: project,
				Usage: plugins.Usage{
					Input: tokenCount(tokens.Get("input")).Plus(tokenCount(tokens.Get("tool"))), CacheRead: tokenCount(tokens.Get("cached")),
					Output: tokenCount(tokens.Get("output")).Plus(thoughts), Reasoning: thoughts,
				},
				ID: m.Get("id").Str,
			})
		}
		if strings.HasSuffix(f.Path, ".jsonl") {
			for line := range f.lines(`"tokens"`) {
				message(line)
			}
			return
		}
		if all, ok := f.object(); ok {
			for _, m := range all.Get("messages").Array() {
				message(m)
			}
		}
	},
}
