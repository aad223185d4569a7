package clientconfig

import (
	"path/filepath"
	"strconv"
	"strings"
)

// https://code.claude.com/docs/en/llm-gateway-connect
var claude = &Client{
	Name: "claude", Title: "Claude Code",
	TakesCommand: true,
	Overrides:    []string{"ANTHROPIC_API_KEY"},
	rivals:       [][]string{{"env", "ANTHROPIC_AUTH_TOKEN"}, {"env", "ANTHROPIC_API_KEY"}},
	format:       jsonFormat{},
	noComments:   true,
	file: func(project string) (string, error) {
		if project != "" { // settings.json of a project is committed, and this has the key
			return filepath.Join(project, ".claude", "settings.local.json"), nil
		}
		return inHome("CLAUDE_CONFIG_DIR", ".claude", "settings.json")
	},
	settings: func(g Gateway) []setting {
		s := []setting{{[]string{"env", "ANTHROPIC_BASE_URL"}, quote(g.Address)}}
		if g.TokenCommand != nil {
			s = append(s,
				setting{[]string{"apiKeyHelper"}, quote(shellLine(g.TokenCommand))},
				setting{[]string{"env", "CLAUDE_CODE_API_KEY_HELPER_TTL_MS"}, quote(strconv.Itoa(tokenTTL))})
		} else {
			s = append(s, setting{[]string{"env", "ANTHROPIC_AUTH_TOKEN"}, quote(g.Key)})
		}
		if len(g.Models) > 0 {
			s = append(s, setting{[]string{"env", "ANTHROPIC_MODEL"}, quote(g.Models[0])})
		}
		return s
	},
}

// tokenTTL is the time after which the client runs the command again, in milliseconds. Tokens that the
// command prints are valid for longer.
const tokenTTL = 60_000

// shellLine is a command as a shell reads it.
func shellLine(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		if words[i] = word; word == "" || strings.ContainsFunc(word, needsQuotes) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// needsQuotes reports whether a shell may take a character for something else.
func needsQuotes(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("_./:@%+=,-", r)
}
