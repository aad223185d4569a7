package llmlog

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// credentialsPlatform is the value of Credentials by which Weir pays providers.
const credentialsPlatform = "platform"

// provisionCredentials finds an account that calls can be made with.
func (h *Handler) provisionCredentials() error {
	switch h.Credentials {
	case "":
		return nil
	case credentialsPlatform:
	default:
		return fmt.Errorf("credentials %q: want %s, or nothing", h.Credentials, credentialsPlatform)
	}
	found := false
	for _, a := range h.site.App.Accounts().All() {
		if a.Label != h.Provider {
			continue
		}
		if found = true; !a.CanForward() {
			return fmt.Errorf("credentials platform: a key alone does not pay for calls of the provider %s: let llm_gateway call it", h.Provider)
		}
	}
	if !found {
		return fmt.Errorf("credentials platform: the global option llm has no provider %q: add `provider %[1]s` there", h.Provider)
	}
	return nil
}

// takeAccount puts the account that pays in the place of the caller's key. Other requests
// than calls, and lists of models, are refused: they would reach what the account keeps.
func (x *exchange) takeAccount() *plugins.Error {
	accounts := x.h.site.App.Accounts().Of(x.rec.Record.Org)
	i := slices.IndexFunc(accounts, func(a *providers.Account) bool { return a.Label == x.h.Provider })
	if i < 0 {
		return plugins.Rejected(http.StatusForbidden, notPayable, "The organization has no credentials for the provider %s.", x.h.Provider)
	}
	x.account = accounts[i]
	x.rec.Record.Account = x.account.Label
	x.rec.Record.Provider, x.rec.Record.Dialect = x.account.Provider, observe.Detect(x.account.Provider, x.rec.Record.Path)
	if !x.operation().isCall() && !x.operation().isBatch() {
		return plugins.Rejected(http.StatusForbidden, notPayable, "Only calls of models, batches of Anthropic and Gemini, and lists of models are made with the credentials of the gateway. llm_gateway serves files, batches of OpenAI and WebSockets.")
	}
	if prefix := observe.PathPrefix(x.rec.Record.Dialect, x.rec.Record.Path); x.r.Method == http.MethodPost && x.operation().isCall() && !x.account.HasPrefix(prefix) {
		return plugins.Rejected(http.StatusForbidden, notPayable, "The path %s is not one of the provider %s that Weir knows: %s may choose another model. "+
			"Leave it out, or add it to the provider's base_url.", x.rec.Record.Path, x.account.Label, prefix)
	}
	x.rec.Record.PassthroughBilling = x.h.site.App.Money().PaysWithCredits(x.rec.Record.Org, x.account) && !x.rec.Record.Dialect.CountsTokens()

	header := make(http.Header)
	for _, name := range passedFields {
		if values, ok := x.r.Header[name]; ok {
			header[name] = values
		}
	}
	x.warnings = x.account.PassHeaders(x.rec.Record.Org, x.h.site.App.Money().Shares(x.rec.Record.Org, x.account), x.r.Header, header)
	x.account.Authorize(header)
	to := *x.r.URL
	query, dropped := make(url.Values), false
	for name, values := range to.Query() {
		if slices.Contains(passedQuery, name) {
			query[name] = values
		} else if !redact.Credential(name) {
			dropped = true
		}
	}
	if dropped {
		x.warnings = append(x.warnings, "query: left out all parameters but "+strings.Join(passedQuery, ", "))
	}
	to.RawQuery = query.Encode()
	x.r.Header, x.r.Trailer, x.r.URL = header, nil, &to
	if repl, ok := x.ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		repl.Set("http.llm.upstream", x.account.HostPort())
	}
	return nil
}

// passedFields are the header fields that a provider gets of a call that Weir pays for. Others may
// say who pays, or name what the account keeps.
var passedFields = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Anthropic-Beta", "Anthropic-Version", "Content-Encoding", "Content-Length", "Content-Type",
	"Openai-Beta", "User-Agent",
}

// passedQuery are the parameters of the query that a provider gets. Others may take out of an
// answer what the call has used, as `fields` does at Google
// (https://cloud.google.com/apis/docs/system-parameters).
var passedQuery = []string{"after", "after_id", "alt", "api-version", "before_id", "beta", "limit", "pageSize", "pageToken"}

// accountFields are the header fields of answers that tell whose account it is.
var accountFields = []string{"Anthropic-Organization-Id", "Openai-Organization", "Openai-Project", "Set-Cookie"}

// hideAccount removes accountFields from the header of an answer, or of its trailers, if an
// account pays that is not the caller's, nil for none.
func hideAccount(header http.Header, account *providers.Account) {
	if account == nil {
		return
	}
	for _, name := range accountFields {
		delete(header, name)
		delete(header, http.TrailerPrefix+name)
	}
}

// checkCall refuses what a call may not ask of the account that pays for it.
func (x *exchange) checkCall(key *access.Key, request bound.Request, body *plugins.Object, isObject bool) error {
	if err := x.checkBatch(); err != nil {
		return err
	}
	if !x.operation().mayCharge() || observe.IsChange(x.rec.Record.Path) {
		return nil
	}
	if !isObject {
		return plugins.Invalid("", "The body is not valid JSON: an object is expected.")
	}
	if slices.ContainsFunc(body.Members, func(m plugins.Member) bool { return m.Name == "background" && m.Value.Type == gjson.True }) {
		return plugins.Unsupported("background", "Nobody could fetch the response with the credentials of the gateway. Leave background out, or call llm_gateway, which keeps responses.")
	}
	if err := key.CheckModels(request, x.account.Label); err != nil {
		return err
	}
	if !x.h.site.App.Money().Shares(x.rec.Record.Org, x.account) {
		return nil
	}
	for _, named := range bound.StateOf(request.Dialect, body).IDs {
		if !named.Answer || !x.rec.Earlier().Answered(named.ID, x.account.BaseURL) {
			return named.NotYours(x.account.Label, "")
		}
	}
	return nil
}

// notPayable is the code of a request that is not made with the credentials of the gateway.
const notPayable = "not_payable"
