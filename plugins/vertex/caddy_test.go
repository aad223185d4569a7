package vertex

import (
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/plugins/plugintest"
)

func TestCaddyfile(t *testing.T) {
	plugintest.Caddyfile(t, "llm.providers.vertex", "project", "location")
}

func TestProvision(t *testing.T) {
	t.Setenv("GOOGLE_CLOUD_PROJECT", "")
	t.Setenv("GOOGLE_CLOUD_LOCATION", "")
	t.Setenv("WEIR_TEST_PROJECT", "mine")
	for _, test := range []struct {
		vertex                 Provider
		env, project, location string
		valid                  bool
	}{
		{Provider{}, "", "", "global", false},
		{Provider{}, "theirs", "theirs", "global", true},
		{Provider{Project: "{env.WEIR_TEST_PROJECT}", Location: "europe-west4"}, "theirs", "mine", "europe-west4", true},
		{Provider{Project: "a/b"}, "", "a%2Fb", "global", true},
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

func TestAddress(t *testing.T) {
	for location, want := range map[string]string{
		"global":       "https://aiplatform.googleapis.com",
		"europe-west4": "https://europe-west4-aiplatform.googleapis.com",
	} {
		if got, _ := (Provider{Location: location}).DefaultTarget(); got != want {
			t.Errorf("%s: got %s, want %s", location, got, want)
		}
	}
}
