package chat

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/plugins/translate"
)

func TestModules(t *testing.T) {
	for i := range vendors {
		v := &vendors[i]
		if v.name == "openai" {
			continue
		}
		info, err := caddy.GetModule("llm.providers." + v.name)
		if err != nil {
			t.Error(err)
			continue
		}
		p, ok := info.New().(interface {
			translate.Provider
			caddyfile.Unmarshaler
			DefaultTarget() (baseURL, keyEnv string)
		})
		if !ok {
			t.Errorf("%s is no provider", v.name)
			continue
		}
		baseURL, keyEnv := p.DefaultTarget()
		if strings.HasSuffix(baseURL, "/") || strings.HasPrefix(baseURL, "https") && keyEnv == "" {
			t.Errorf("%s is at %q with the key of %q", v.name, baseURL, keyEnv)
		}
		for _, input := range []string{v.name + " x", v.name + " {\n x\n}"} {
			if err := p.UnmarshalCaddyfile(caddyfile.NewTestDispenser(input)); err == nil {
				t.Errorf("%q is taken", input)
			}
		}
		if err := p.UnmarshalCaddyfile(caddyfile.NewTestDispenser(v.name)); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
	}
}

func TestAzureCaddyfile(t *testing.T) {
	z := new(Azure)
	if err := z.UnmarshalCaddyfile(caddyfile.NewTestDispenser("azure {\n api_version 2025-01-01-preview\n}")); err != nil {
		t.Fatal(err)
	}
	if z.APIVersion != "2025-01-01-preview" {
		t.Errorf("got %q", z.APIVersion)
	}
	if err := z.UnmarshalCaddyfile(caddyfile.NewTestDispenser("azure {\n api_version\n}")); err == nil {
		t.Error("a version that is none is taken")
	}
}
