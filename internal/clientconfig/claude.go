package clientconfig

import "path/filepath"

// https://code.claude.com/docs/en/llm-gateway-connect
var claude = &Client{
	Name: "claude", Title: "Claude Code",
	Overrides: []string{"ANTHROPIC_API_KEY"},
	format:    jsonFormat{},
	file: func(project string) (string, error) {
		if project != "" { // settings.json of a project is committed, and this has the key
			return filepath.Join(project, ".claude", "settings.local.json"), nil
		}
		return inHome("CLAUDE_CONFIG_DIR", ".claude", "settings.json")
	},
	settings: func(g Gateway) []setting {
		s := []setting{
			{[]string{"env", "ANTHROPIC_BASE_URL"}, quote(g.Address)},
			{[]string{"env", "ANTHROPIC_AUTH_TOKEN"}, quote(g.Key)},
		}
		if len(g.Models) > 0 {
			s = append(s, setting{[]string{"env", "ANTHROPIC_MODEL"}, quote(g.Models[0])})
		}
		return s
	},
}
