package clientconfig

import (
	"os"
	"path/filepath"
	"strings"
)

// https://opencode.ai/v1/docs/providers
var opencode = &Client{
	Name: "opencode", Title: "opencode", NeedsModels: true,
	Note:   "In opencode, /models shows the models of Weir.",
	format: jsonFormat{},
	file: func(project string) (string, error) {
		dir := project
		if project == "" {
			base, err := inHome("XDG_CONFIG_HOME", ".config")
			if err != nil {
				return "", err
			}
			dir = filepath.Join(base, "opencode")
		}
		file := filepath.Join(dir, "opencode.json")
		if _, err := os.Stat(file + "c"); err == nil {
			return file + "c", nil
		}
		return file, nil
	},
	settings: func(g Gateway) []setting {
		models := make([]string, len(g.Models))
		for i, m := range g.Models {
			models[i] = "\n    " + quote(m) + ": {}"
		}
		return []setting{{[]string{"provider", "weir"}, `{
  "npm": "@ai-sdk/openai-compatible",
  "name": "Weir",
  "options": {
    "baseURL": ` + quote(g.Address+"/v1") + `,
    "apiKey": ` + quote(g.Key) + `
  },
  "models": {` + strings.Join(models, ",") + `
  }
}`}}
	},
}
