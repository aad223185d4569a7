package clientconfig

import "errors"

// https://developers.openai.com/codex/config-reference
var codex = &Client{
	Name: "codex", Title: "Codex",
	format: tomlFormat{},
	file: func(project string) (string, error) {
		if project != "" {
			return "", errors.New("Codex takes model_provider from the user's configuration alone: leave --project out") //nolint:staticcheck // a name
		}
		return inHome("CODEX_HOME", ".codex", "config.toml")
	},
	settings: func(g Gateway) []setting {
		s := []setting{
			{[]string{"model_provider"}, `"weir"`},
			{[]string{"model_providers", "weir"}, "[model_providers.weir]\n" +
				"name = \"Weir\"\n" +
				"base_url = " + quote(g.Address+"/v1") + "\n" +
				"wire_api = \"responses\"\n" +
				"experimental_bearer_token = " + quote(g.Key) + "\n"},
		}
		if len(g.Models) > 0 {
			s = append(s, setting{[]string{"model"}, quote(g.Models[0])})
		}
		return s
	},
}
