package clientconfig

import (
	"encoding/json"
	"errors"
	"strconv"
)

// https://developers.openai.com/codex/config-reference
var codex = &Client{
	Name: "codex", Title: "Codex",
	TakesCommand: true,
	format:       tomlFormat{},
	file: func(project string) (string, error) {
		if project != "" {
			return "", errors.New("Codex takes model_provider from the user's configuration alone: leave --project out") //nolint:staticcheck // a name
		}
		return inHome("CODEX_HOME", ".codex", "config.toml")
	},
	settings: func(g Gateway) []setting {
		key := "experimental_bearer_token = " + quote(g.Key) + "\n"
		if g.TokenCommand != nil { // https://github.com/openai/codex/pull/16267
			arguments, _ := json.Marshal(g.TokenCommand[1:]) // of strings
			key = "\n[model_providers.weir.auth]\n" +
				"command = " + quote(g.TokenCommand[0]) + "\n" +
				"args = " + string(arguments) + "\n" +
				"timeout_ms = 30000\n" +
				"refresh_interval_ms = " + strconv.Itoa(tokenTTL) + "\n"
		}
		s := []setting{
			{[]string{"model_provider"}, `"weir"`},
			{[]string{"model_providers", "weir"}, "[model_providers.weir]\n" +
				"name = \"Weir\"\n" +
				"base_url = " + quote(g.Address+"/v1") + "\n" +
				"wire_api = \"responses\"\n" + key},
		}
		if len(g.Models) > 0 {
			s = append(s, setting{[]string{"model"}, quote(g.Models[0])})
		}
		return s
	},
}
