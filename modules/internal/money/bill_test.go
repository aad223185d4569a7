package money

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins/catalog"
	_ "github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/translate"
)

// A request that was made for an account has its key when a bill sends it, and not before.
func TestOnlyBillsSendKeys(t *testing.T) {
	var arrived http.Header
	var query string
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	accounts := providers.New(catalog.Default(), nil, zap.NewNop())
	if err := accounts.Add(ctx, &providers.Provider{Label: "openai", BaseURL: "https://api.example.com", APIKey: "secret+key"}); err != nil {
		t.Fatal(err)
	}
	account := accounts.Of("")[0]
	account.Transport = providers.NewTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
		arrived, query = r.Header, r.URL.Query().Get("key")
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	target, _ := account.Target("m", nil, nil)
	req, err := target.Post(t.Context(), "/v1/chat?key="+target.Key, translate.Bearer, map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	bill, err := newBudgets(t).Admit(t.Context(), Spending{Account: account})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a bill may send a request again
		resp, err := bill.Send(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for what, got := range map[string]string{"header": arrived.Get("Authorization"), "query": "Bearer " + query} {
			if got != "Bearer secret+key" {
				t.Errorf("the provider gets the %s %q", what, got)
			}
		}
		if sent := fmt.Sprint(req.Header, req.URL, resp.Request.Header, resp.Request.URL); strings.Contains(sent, "secret") {
			t.Errorf("who sends a request has the key: %s", sent)
		}
	}
}

// A proxy with the platform's credentials calls below the path of the provider's address, as the
// gateway does.
func TestAddressesKeepTheirPath(t *testing.T) {
	for _, c := range [][3]string{
		{"https://one.example.com", "/v1/messages", "/v1/messages"},
		{"https://one.example.com/v1", "/v1/chat/completions", "/v1/chat/completions"},
		{"https://one.example.com/proxy/v1", "/v1/chat/completions", "/proxy/v1/chat/completions"},
		{"https://one.example.com/proxy/v1", "/proxy/v1/chat/completions", "/proxy/v1/chat/completions"},
		{"https://one.example.com/team/proxy/", "/v1/messages", "/team/proxy/v1/messages"},
		{"https://one.example.com/openai/v1", "/v2/models", "/openai/v2/models"},
		{"https://one.example.com/v1beta", "/upload/v1beta/files", "/upload/v1beta/files"},
		{"https://one.example.com/v1beta", "/v1/models", "/v1/models"},
		{"https://one.example.com/a%20b", "/v1/files/x%2Fy", "/a%20b/v1/files/x%2Fy"},
	} {
		var asked string
		account := &providers.Account{BaseURL: c[0], Transport: providers.NewTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
			asked = r.URL.EscapedPath()
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}))}
		bill, err := newBudgets(t).Admit(t.Context(), Spending{Account: account})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := new(AccountTransport).RoundTrip(WithBill(httptest.NewRequest(http.MethodGet, c[1], nil), bill))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if asked != c[2] {
			t.Errorf("%s at %s is %s, want %s", c[1], c[0], asked, c[2])
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
