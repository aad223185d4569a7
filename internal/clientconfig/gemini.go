package clientconfig

import (
	"os"
	"path/filepath"
)

// https://geminicli.com/docs/reference/configuration
var gemini = &Client{
	Name: "gemini", Title: "Gemini CLI",
	Overrides: []string{"GOOGLE_GEMINI_BASE_URL", "GEMINI_CLI_CUSTOM_HEADERS"},
	Path:      "/gemini/v1beta/models",
	Note: "Gemini CLI calls Google with your own Gemini key (GEMINI_API_KEY), through the path /gemini of Weir. " +
		"If it says that no valid auth method is selected, select \"Use Gemini API key\" by /auth: it takes an address alone for another method. " +
		"It reads the first .env file that it finds: one in your folder or above hides this one.",
	format: envFormat{},
	file: func(project string) (string, error) {
		if project != "" {
			return filepath.Join(project, ".gemini", ".env"), nil
		}
		if home := os.Getenv("GEMINI_CLI_HOME"); home != "" {
			return filepath.Join(home, ".gemini", ".env"), nil
		}
		return inHome("", ".gemini", ".env")
	},
	settings: func(g Gateway) []setting {
		s := []setting{
			{[]string{"GOOGLE_GEMINI_BASE_URL"}, quote(g.Address + "/gemini")},
			{[]string{"GEMINI_CLI_CUSTOM_HEADERS"}, quote("Service-Auth: Bearer " + g.Key)},
		}
		if len(g.Models) > 0 {
			s = append(s, setting{[]string{"GEMINI_MODEL"}, quote(g.Models[0])})
		}
		return s
	},
}
