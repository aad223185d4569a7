package clientconfig

import "errors"

// https://docs.continue.dev/reference
var continueDev = &Client{
	Name: "continue", Title: "Continue", NeedsModels: true,
	format: yamlFormat{empty: "name: Local Config\nversion: 1.0.0\nschema: v1\n"},
	file: func(project string) (string, error) {
		if project != "" {
			return "", errors.New("a project has no config.yaml of Continue: leave --project out")
		}
		return inHome("CONTINUE_GLOBAL_DIR", ".continue", "config.yaml")
	},
	settings: func(g Gateway) []setting {
		s := make([]setting, len(g.Models))
		for i, m := range g.Models {
			name := "Weir: " + m
			// Each becomes the first item of the list, so the default model comes last here.
			s[len(s)-1-i] = setting{[]string{"models", name}, "- name: " + quote(name) + "\n" +
				"  provider: openai\n" +
				"  model: " + quote(m) + "\n" +
				"  apiBase: " + quote(g.Address+"/v1") + "\n" +
				"  apiKey: " + quote(g.Key) + "\n" +
				"  roles: [chat, edit, apply]\n"}
		}
		return s
	},
}
