package gemini

import (
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestCaddyfile(t *testing.T) {
	for input, ok := range map[string]bool{
		"gemini":                   true,
		"gemini {\n}":              true,
		"gemini flash":             false,
		"gemini {\n\tregion eu\n}": false,
		"vertex":                   true,
		"vertex {\n\tproject p\n\tlocation eu\n}": true,
		"vertex p":                              false,
		"vertex {\n\tproject\n}":                false,
		"vertex {\n\tproject p q\n}":            false,
		"vertex {\n\tproject p\n\tproject q\n}": false,
		"vertex {\n\tregion eu\n}":              false,
	} {
		module, err := caddy.GetModule("llm.providers." + input[:len("gemini")])
		if err != nil {
			t.Fatal(err)
		}
		err = module.New().(caddyfile.Unmarshaler).UnmarshalCaddyfile(caddyfile.NewTestDispenser(input))
		if (err == nil) != ok {
			t.Errorf("%q: got error %v", input, err)
		}
	}
}

func TestVertexProvision(t *testing.T) {
	t.Setenv("GOOGLE_CLOUD_PROJECT", "")
	t.Setenv("GOOGLE_CLOUD_LOCATION", "")
	t.Setenv("WEIR_TEST_PROJECT", "mine")
	for _, test := range []struct {
		vertex                 Vertex
		env, project, location string
		valid                  bool
	}{
		{Vertex{}, "", "", "global", false},
		{Vertex{}, "theirs", "theirs", "global", true},
		{Vertex{Project: "{env.WEIR_TEST_PROJECT}", Location: "europe-west4"}, "theirs", "mine", "europe-west4", true},
		{Vertex{Project: "a/b"}, "", "a%2Fb", "global", true},
	} {
		t.Setenv("GOOGLE_CLOUD_PROJECT", test.env)
		v := test.vertex
		if err := v.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		if v.Project != test.project || v.Location != test.location || (v.Validate() == nil) != test.valid {
			t.Errorf("%+v: got %+v, %v", test.vertex, v, v.Validate())
		}
	}
}

func TestVertexAddress(t *testing.T) {
	for location, want := range map[string]string{
		"global":       "https://aiplatform.googleapis.com",
		"europe-west4": "https://europe-west4-aiplatform.googleapis.com",
	} {
		if got, _ := (Vertex{Location: location}).DefaultTarget(); got != want {
			t.Errorf("%s: got %s, want %s", location, got, want)
		}
	}
}
