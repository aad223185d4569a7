package routing

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

const testCatalog = `{"version": "test", "providers": [
	{"id": "alpha", "models": [
		{"id": "big", "aliases": ["big-latest"], "input": ["text", "image"], "output": ["text"], "context": 1000, "released": "2025-06-10", "owner": "maker",
			"prices": [{"input": "2", "output": "8"}]},
		{"id": "small", "input": ["text"], "output": ["text"], "context": 1000, "prices": [{"input": "1", "output": "1"}]},
		{"id": "maker/open", "input": ["text"], "output": ["text"], "context": 1000, "prices": [{"input": "3", "output": "3"}]},
		{"id": "text-embedding", "input": ["text"], "output": ["text"], "context": 1000},
		{"id": "whisper", "input": ["audio"], "output": ["text"]},
		{"id": "old"}
	]},
	{"id": "beta", "models": [
		{"id": "maker/open", "input": ["text"], "output": ["text"], "context": 1000, "prices": [{"input": "1", "output": "1"}]},
		{"id": "free-price", "input": ["text"], "output": ["text"], "context": 1000}
	]},
	{"id": "gamma", "models": [{"id": "secret", "input": ["text"], "output": ["text"], "context": 1000}]}
]}`

func parseCatalog(t testing.TB) *catalog.Catalog {
	c, err := catalog.Parse([]byte(testCatalog))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func testResolver(t *testing.T) *Resolver {
	account := func(label, provider string, platform bool, models ...string) *providers.Account {
		return &providers.Account{Label: label, Provider: provider, Platform: platform, Models: models, API: needsKey{}}
	}
	return &Resolver{
		Catalog: parseCatalog(t),
		Accounts: []*providers.Account{
			account("mine", "alpha", false),
			account("alpha", "alpha", true),
			account("beta", "beta", true),
			account("lab", "vllm", true, "llama", "small"),
			account("any", "compatible", true),
		},
		Keyless: []*providers.Account{account("gamma", "gamma", true)},
		Aliases: map[string]*Alias{"fast": InTheirOrder("small", "beta/maker/open"), "big": InTheirOrder("alpha/small"), "broken": InTheirOrder("nothing")},
	}
}

func TestResolve(t *testing.T) {
	r := testResolver(t)
	for model, want := range map[string]string{
		"fast":                          "mine/small alpha/small lab/small beta/maker/open", // an alias, in its own order
		"big":                           "alpha/small",                                      // also when it hides a model
		"alpha/big":                     "alpha/big",
		"lab/llama":                     "lab/llama",
		"small":                         "mine/small alpha/small lab/small", // own first, then by price
		"maker/open":                    "mine/maker/open beta/maker/open alpha/maker/open",
		"big-latest":                    "mine/big-latest alpha/big-latest",
		"alpha/maker/open":              "alpha/maker/open",
		"alpha/brand-new":               "alpha/brand-new", // unknown to the catalogue
		"any/big":                       "any/big",         // not the big of another provider
		"any/org/model":                 "any/org/model",
		"brand-new/alpha":               "alpha/brand-new", // model/label
		"org/model/any":                 "any/org/model",
		"beta/maker/open, alpha/small":  "beta/maker/open alpha/small",
		"alpha/small,alpha/small":       "alpha/small",
		"big,alpha/small":               "alpha/small",
		"nothing,alpha/small":           "alpha/small (model: no provider serves nothing, left out)",
		"":                              "404",
		"nothing":                       "404",
		"broken":                        "404",
		"lab/unlisted":                  "404", // the block names what it serves
		"nobody/small":                  "404", // a label that does not exist is no part of a name
		"nobody/maker/open":             "404",
		"small-2025-01-01":              "404", // no exact id
		"gamma/secret":                  "404", // no key
		"secret":                        "404",
		"alpha/":                        "404",
		"/alpha":                        "404",
		",":                             "404",
		strings.Repeat("x", MaxModel+1): "400",
	} {
		targets, warnings, err := r.Resolve(model)
		var got []string
		for _, t := range targets {
			got = append(got, t.Name)
		}
		for _, w := range warnings {
			got = append(got, "("+w+")")
		}
		if e, ok := errors.AsType[*plugins.Error](err); ok {
			got = append(got, map[int]string{400: "400", 404: "404"}[e.Status])
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%.40q goes to %s, want %s", model, s, want)
		}
	}
}

// Clients choose the names of models, so what is remembered of them is bounded in bytes.
func TestNamesAreRememberedInBounds(t *testing.T) {
	r := testResolver(t)
	for i := range 3 * maxRemembered / MaxModel {
		name := fmt.Sprintf("%s/%0*d", r.Accounts[0].Label, MaxModel/2, i)
		if _, _, err := r.Resolve(name); err != nil {
			t.Fatal(err)
		}
	}
	size := 0
	for name, targets := range r.remembered {
		size += len(name)
		for _, target := range targets {
			size += len(target.Name)
		}
	}
	if len(r.remembered) == 0 || size > maxRemembered {
		t.Errorf("%d names with %d bytes are remembered, want at most %d bytes", len(r.remembered), size, maxRemembered)
	}
}

func TestNotFoundExplains(t *testing.T) {
	const labels = "The labels of providers are: mine, alpha, beta, lab, any."
	for model, want := range map[string]string{
		"smal":         "'smal'. Did you mean small? " + labels,
		"maker/opn":    "Did you mean maker/open? ",
		"BIG-":         "Did you mean big?",
		"lama":         "Did you mean llama?",
		"nobody/small": "Did you mean small? " + labels,
		"nobody/new":   "'nobody/new'. " + labels,
		"gamma/secret": "The provider 'gamma' has no API key: set TEST_API_KEY.",
		"secret/gamma": "The provider 'gamma' has no API key: set TEST_API_KEY.",
		"secret":       "The provider 'gamma' has no API key: set TEST_API_KEY.",
	} {
		_, _, err := testResolver(t).Resolve(model)
		e, ok := errors.AsType[*plugins.Error](err)
		if !ok || e.Code != "model_not_found" || e.Param != "model" {
			t.Errorf("%s: %v, want model_not_found", model, err)
			continue
		}
		if !strings.Contains(e.Message, want) {
			t.Errorf("%s: got %q, want %q in it", model, e.Message, want)
		}
	}
}

// needsKey is the API of a provider that takes a key.
type needsKey struct{ providers.API }

func (needsKey) DefaultTarget() (baseURL, keyEnv string) {
	return "https://example.com", "TEST_API_KEY"
}

func FuzzResolve(f *testing.F) {
	f.Add("alpha/big, fast")
	f.Add("a/b/c/d,")
	r := &Resolver{Catalog: parseCatalog(f), Accounts: []*providers.Account{{Label: "alpha", Provider: "alpha"}}}
	f.Fuzz(func(t *testing.T, model string) {
		targets, warnings, err := r.Resolve(model)
		if (err == nil) != (len(targets) > 0) {
			t.Fatalf("%d targets, error %v", len(targets), err)
		}
		for _, w := range warnings {
			if strings.ContainsAny(w, "\r\n") {
				t.Fatalf("%q is no header value", w)
			}
		}
	})
}
