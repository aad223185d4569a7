package providers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins/catalog"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

func init() {
	caddy.RegisterModule(new(fakeAPI))
	caddy.RegisterModule(new(keylessAPI))
}

// keylessAPI is a kind of provider whose key is not set.
type keylessAPI struct{ fakeAPI }

func (*keylessAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.providers.keyless", New: func() caddy.Module { return new(keylessAPI) }}
}

func (*keylessAPI) DefaultTarget() (baseURL, keyEnv string) {
	return "https://api.fake.test/v1/", "WEIR_TEST_NO_SUCH_KEY"
}

// fakeAPI is a kind of provider.
type fakeAPI struct {
	Region string `json:"region,omitempty"`
}

func (*fakeAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.providers.fake", New: func() caddy.Module { return new(fakeAPI) }}
}

func (*fakeAPI) DefaultTarget() (baseURL, keyEnv string) {
	return "https://api.fake.test/v1/", "WEIR_TEST_FAKE_KEY"
}

func (*fakeAPI) Prepare(context.Context, *translate.Request, translate.Target) (*http.Request, error) {
	return nil, nil
}
func (*fakeAPI) Decode(*http.Response, *translate.Assembler) error { return nil }
func (*fakeAPI) Error(*http.Response) *plugins.Error               { return nil }

// load makes the accounts of a configuration; unload cleans them up.
func load(t *testing.T, config string) (accounts Accounts, unload context.CancelFunc, err error) {
	t.Helper()
	base, err := caddy.ProvisionContext(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, unload := caddy.NewContext(base)
	var configured struct {
		Providers []*Provider
		Orgs      map[string]struct{ Providers []*Provider }
	}
	if err := json.Unmarshal([]byte(config), &configured); err != nil {
		t.Fatal(err)
	}
	accounts = New(catalog.Default(), nil, zap.NewNop())
	for _, p := range configured.Providers {
		err = errors.Join(err, accounts.Add(ctx, p))
	}
	for org, own := range configured.Orgs {
		for _, p := range own.Providers {
			err = errors.Join(err, accounts.AddOwn(ctx, org, p))
		}
	}
	return accounts, unload, err
}

func TestAccounts(t *testing.T) {
	t.Setenv("WEIR_TEST_FAKE_KEY", "from-env")
	accounts, unload, err := load(t, `{
		"providers": [
			{"label": "fake"},
			{"label": "lab", "api": {"kind": "fake", "region": "eu"}, "base_url": "http://10.0.0.5:8000/v1", "api_key": "lab-key", "models": ["llama-4"]},
			{"api": {"kind": "keyless"}, "label": "keyless"}
		],
		"orgs": {"acme": {"providers": [
			{"label": "keyless", "api_key": "acme-1"},
			{"label": "lab", "api_key": "acme-2"}
		]}}
	}`)
	if err != nil {
		t.Fatal(err)
	}
	defer unload()

	show := func(accounts []*Account) string {
		var lines []string
		for _, a := range accounts {
			owner := "own"
			if a.Platform {
				owner = "platform"
			}
			lines = append(lines, strings.Join([]string{
				owner, a.Label, a.Provider, a.BaseURL, a.key, strings.Join(a.Models, "+"), region(a.API)}, " "))
		}
		return strings.Join(lines, "\n")
	}
	const platform = "platform fake fake https://api.fake.test/v1 from-env  \n" +
		"platform lab fake http://10.0.0.5:8000/v1 lab-key llama-4 eu"
	for org, want := range map[string]string{
		"default": platform,
		"acme": "own keyless keyless https://api.fake.test/v1 acme-1  \n" +
			"own lab fake http://10.0.0.5:8000/v1 acme-2 llama-4 eu\n" + platform,
	} {
		if got := show(accounts.Of(org)); got != want {
			t.Errorf("%s can use\n%s\nwant\n%s", org, got, want)
		}
	}
	if k := accounts.Keyless("default"); len(k) != 1 || k[0].Label != "keyless" || k[0].KeyEnv() != "WEIR_TEST_NO_SUCH_KEY" {
		t.Errorf("without a key are %v", k)
	}
	if k := accounts.Keyless("acme"); len(k) != 0 {
		t.Errorf("acme has a key of its own, and is told to set that of %s", k[0].Label)
	}
	acme := accounts.Of("acme")
	if acme[0].ID == acme[1].ID || acme[0].ID == acme[2].ID || acme[0].Transport == (Transport{}) {
		t.Error("accounts that differ by their key are the same")
	}
}

func TestProviderErrors(t *testing.T) {
	t.Setenv("WEIR_TEST_FAKE_KEY", "from-env")
	for config, want := range map[string]string{
		`{"providers": [{"label": "nosuch"}]}`:                                                         "nosuch",
		`{"providers": [{"label": "fake"}, {"label": "fake"}]}`:                                        "labelled fake",
		`{"providers": [{"label": "a/b", "api": {"kind": "fake"}}]}`:                                   "slash",
		`{"providers": [{"label": "fake", "base_url": "localhost:8000"}]}`:                             "base_url",
		`{"providers": [{"label": "fake", "base_url": "http://weir:sec/ret@10.0.0.5"}]}`:               `base_url "…@10.0.0.5"`,
		`{"providers": [{"label": "fake"}], "orgs": {"o": {"providers": [{"label": "fake"}]}}}`:        "api_key of its own",
		`{"providers": [{"label": "fake", "api_key": "{env.WEIR_TEST_NO_SUCH_KEY}"}]}`:                 "WEIR_TEST_NO_SUCH_KEY is not set",
		`{"providers": [{"label": "fake", "base_url": "{env.WEIR_TEST_NO_SUCH_URL}/v1"}]}`:             "WEIR_TEST_NO_SUCH_URL is not set",
		`{"providers": [{"label": "fake", "transport": {"protocol": "llm", "proxy_protocol": "v1"}}]}`: "leave proxy_protocol out",
	} {
		_, unload, err := load(t, config)
		unload()
		if err == nil {
			t.Errorf("%s was accepted", config)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something about %s", config, err, want)
		}
	}
}

// region is the setting of a fake kind.
func region(api API) string {
	if f, ok := api.(*fakeAPI); ok {
		return f.Region
	}
	return ""
}

// cloudAPI signs with credentials of its own, or with those of the machine.
type cloudAPI struct {
	fakeAPI
	ID string `json:"id,omitempty"`
}

func (*cloudAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.providers.cloud", New: func() caddy.Module { return new(cloudAPI) }}
}

func (*cloudAPI) KeyOptional() bool      { return true }
func (c *cloudAPI) HasCredentials() bool { return c.ID != "" }

// TestCloudCredentials holds that no organisation calls at the cost of another
// or of the operator, unless it says so by having no provider of its own.
func TestCloudCredentials(t *testing.T) {
	caddy.RegisterModule(new(cloudAPI))
	for config, ok := range map[string]bool{
		`{"providers": [{"label": "cloud", "api": {"kind": "cloud", "id": "platform"}}]}`:                                                                                            true,
		`{"providers": [{"label": "cloud"}]}`:                                                                                                                                        true,
		`{"providers": [{"label": "cloud", "api": {"kind": "cloud", "id": "platform"}}], "orgs": {"o": {"providers": [{"label": "cloud"}]}}}`:                                        false,
		`{"orgs": {"o": {"providers": [{"label": "cloud"}]}}}`:                                                                                                                       false,
		`{"orgs": {"o": {"providers": [{"label": "cloud", "api": {"kind": "cloud", "id": "own"}}]}}}`:                                                                                true,
		`{"providers": [{"label": "cloud", "api": {"kind": "cloud", "id": "platform"}}], "orgs": {"o": {"providers": [{"label": "cloud", "api": {"kind": "cloud", "id": "own"}}]}}}`: true,
		`{"providers": [{"label": "cloud", "api": {"kind": "cloud", "id": "platform"}}], "orgs": {"o": {"providers": [{"label": "cloud", "api_key": "own"}]}}}`:                      true,
	} {
		_, unload, err := load(t, config)
		if (err == nil) != ok {
			t.Errorf("%s: %v", config, err)
		}
		unload()
	}
}

// Interface guard
var _ API = (*fakeAPI)(nil)

// A known host has its vendor's name, as in the proxy, whatever the kind and the label are.
func TestKnownHostsHaveTheirVendorsName(t *testing.T) {
	for _, c := range []struct{ kind, label, baseURL, want string }{
		{"compatible", "vercel", "https://ai-gateway.vercel.sh/v1", "vercel"},
		{"compatible", "mine", "https://ai-gateway.vercel.sh/v1", "vercel"},
		{"compatible", "moonshot", "https://api.moonshot.ai/v1", "moonshotai"},
		{"compatible", "openrouter", "https://openrouter.ai/api/v1", "openrouter"},
		{"openai", "openai", "https://eu.api.openai.com/v1", "openai"},
		{"compatible", "openrouter", "http://127.0.0.1:1/v1", "openrouter"},
		{"compatible", "lab", "http://127.0.0.1:1/v1", "compatible"},
	} {
		p := &Provider{Label: c.label, kind: c.kind}
		if got := p.name(catalog.Default(), c.baseURL); got != c.want {
			t.Errorf("%s as %s at %s is named %s, want %s", c.kind, c.label, c.baseURL, got, c.want)
		}
	}
}

// mistralAPI is a kind of provider that has the name of a vendor, and no address of its own.
type mistralAPI struct{ API }

func (mistralAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.providers.mistral"}
}

func TestDefaultTargetIsTheVendorsUnlessTheKindHasOne(t *testing.T) {
	for _, tt := range []struct {
		api             API
		baseURL, keyEnv string
	}{
		{mistralAPI{}, "https://api.mistral.ai/v1", "MISTRAL_API_KEY"},
		{new(fakeAPI), "https://api.fake.test/v1/", "WEIR_TEST_FAKE_KEY"},
	} {
		if baseURL, keyEnv := defaultTarget(tt.api); baseURL != tt.baseURL || keyEnv != tt.keyEnv {
			t.Errorf("%T is at %q with the key of %q, want %q and %q", tt.api, baseURL, keyEnv, tt.baseURL, tt.keyEnv)
		}
	}
}

func init() { caddy.RegisterModule(new(taggingAPI)) }

// taggingAPI is a kind of provider whose invoices have tags of lower-case letters.
type taggingAPI struct{ fakeAPI }

func (*taggingAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.providers.tagging", New: func() caddy.Module { return new(taggingAPI) }}
}

func (*taggingAPI) CheckTag(_ translate.Target, tag translate.Tag) error {
	if strings.ToLower(tag.Name+tag.Value) != tag.Name+tag.Value {
		return errors.New("has capitals")
	}
	return nil
}

type caller map[string]string

func (c caller) Verified(attribute string) string { return c[attribute] }

// A target has the tags that are configured, of what is verified of the caller, or there is none.
func TestTags(t *testing.T) {
	accounts, unload, err := load(t, `{"providers":[{"label":"tagging","api_key":"k","tags":["project","property.team"]},{"label":"fake","api_key":"k"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	defer unload()
	tagging, plain := accounts.Of("")[0], accounts.Of("")[1]
	target, err := tagging.Target("m", nil, caller{"project": "search", "property.team": "a", "user": "ada"})
	if err != nil || !slices.Equal(target.Tags, []translate.Tag{{Name: "project", Value: "search"}, {Name: "team", Value: "a"}}) {
		t.Errorf("%v, %v", target.Tags, err)
	}
	for want, by := range map[string]caller{
		"the API key has none": {"project": "search", "team": "a"},
		"has capitals":         {"project": "Search", "property.team": "a"},
	} {
		_, err := tagging.Target("m", nil, by)
		refused, ok := errors.AsType[*plugins.Error](err)
		if !ok || refused.Status != http.StatusForbidden || !strings.Contains(refused.Message, want) {
			t.Errorf("%v: %v", by, err)
		}
	}
	if target, err := plain.Target("m", nil, caller{"user": "ada"}); err != nil || target.Tags != nil {
		t.Errorf("a vendor learns of %v without being configured: %v", target.Tags, err)
	}
	for config, want := range map[string]string{
		`{"label":"fake","api_key":"k","tags":["user"]}`:             "have none",
		`{"label":"tagging","api_key":"k","tags":["team"]}`:          "'team' is none of user, project",
		`{"label":"tagging","api_key":"k","tags":["property.Team"]}`: "has capitals",
		`{"label":"tagging","api_key":"k","tags":["user","user"]}`:   "named twice",
	} {
		_, unload, err := load(t, `{"providers":[`+config+`]}`)
		unload()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
