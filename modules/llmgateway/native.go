package llmgateway

import (
	"errors"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/internal/streamusage"
	"github.com/weirhq/weir/modules/llmgateway/reasoning"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
)

// native is the lane to a provider that speaks the client's dialect: the bytes of the request and of
// the answer pass unchanged, as far as possible.
type native struct{ a *attempt }

// Request implements lane.
func (n *native) Request() (*http.Request, error) {
	a, c := n.a, n.a.call
	api, ok := a.target.Account.API.(translate.Native)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	body, err := n.body()
	if err != nil {
		return nil, err
	}
	req, err := api.PrepareNative(c.ctx, c.dialect, c.input.object(body), a.to)
	if err != nil {
		return nil, err
	}
	n.passRequestHeaders(req)
	adapter, ok := a.target.Account.API.(translate.HeaderAdapter)
	if !ok {
		return req, nil
	}
	return req, n.acceptWarnings(adapter.AdaptHeader(req.Header, a.to))
}

// acceptWarnings passes on to the client what an adapter has left out because the target refuses it. A
// strict request cannot be sent without it: then the error names the first field.
func (n *native) acceptWarnings(warnings []string) error {
	if len(warnings) > 0 && n.a.call.controls.Strict {
		field, _, _ := strings.Cut(warnings[0], ":")
		return plugins.Unsupported(field, "Unsupported parameter: '%s' is not supported by the model.", field)
	}
	n.a.client.warnings = append(n.a.client.warnings, warnings...)
	return nil
}

// passRequestHeaders passes the client's headers that say how to read the body.
func (n *native) passRequestHeaders(req *http.Request) {
	a, c := n.a, n.a.call
	passFields(req.Header, c.r.Header, "Anthropic-Version", "Anthropic-Beta", "Openai-Beta")
	a.client.warnings = append(a.client.warnings, a.passHeaders(req.Header)...)
}

// passFields copies the fields of these names from one header to another.
func passFields(to, from http.Header, names ...string) {
	for _, name := range names {
		if values := from[name]; values != nil {
			to[name] = values
		}
	}
}

// noPrice is the warning about a service tier that is left out of a request.
const noPrice = "without a known price, left out"

// body returns the client's body, byte for byte unless it has something that the provider
// must not get.
func (n *native) body() ([]byte, error) {
	a := n.a
	body := a.call.input.sent
	if a.loweredLimit() > 0 {
		var err error
		if body, err = n.lowerLimit(body); err != nil {
			return nil, err
		}
	}
	body = n.withoutUnknownReasoning(body)
	body, warnings := reasoning.Readable(a.call.dialect, body)
	a.client.warnings = append(a.client.warnings, warnings...)
	if a.dropsReasoning {
		body, warnings = reasoning.Without(a.call.dialect, body)
		a.client.warnings = append(a.client.warnings, warnings...)
	}
	if state := &a.call.continuation.state; state.PreviousResponseID != "" || state.ConversationID != "" {
		body = reasoning.WithoutEmpty(body)
	}
	body, err := n.adapt(body)
	if err != nil {
		return nil, err
	}
	body = n.askForUsage(body)
	if !a.unpricedTier() {
		return body, nil
	}
	if a.call.controls.Strict {
		return nil, plugins.Unsupported("service_tier", "Unsupported parameter: the 'service_tier' has no known price, and neither credits nor a budget can bound it.")
	}
	a.client.warnings = append(a.client.warnings, "service_tier: "+noPrice)
	return sjson.DeleteBytes(body, "service_tier")
}

// adapt leaves out of a body the fields that clients commonly send and that the target is known to
// refuse.
func (n *native) adapt(body []byte) ([]byte, error) {
	a := n.a
	adapter, ok := a.target.Account.API.(translate.Adapter)
	if !ok {
		return body, nil
	}
	body, warnings := adapter.Adapt(a.call.dialect, a.call.input.object(body), a.to)
	return body, n.acceptWarnings(warnings)
}

// askForUsage asks a stream for its usage if the call is bounded: the model's thoughts cost
// money, and the stream does not show them. The client gets the usage only if it has asked.
func (n *native) askForUsage(body []byte) []byte {
	a := n.a
	if !a.call.dialect.OfChat() || !a.bounded() {
		return body
	}
	asking, changed := streamusage.Ask(body, true)
	if adapter, ok := a.target.Account.API.(translate.Adapter); ok && changed {
		if _, warnings := adapter.Adapt(a.call.dialect, a.call.input.object(asking), a.to); len(warnings) > 0 {
			return body // the provider refuses to be asked, and tells the usage unasked
		}
	}
	if changed {
		a.client.usage = streamusage.NewFilter(a.client.w)
		a.client.w = a.client.usage
	}
	return asking
}

// lowerLimit lowers the output limit of a body in the client's dialect to what credits and budgets cover.
func (n *native) lowerLimit(body []byte) ([]byte, error) {
	a := n.a
	a.client.warnings = append(a.client.warnings, a.loweredWarning())
	body, err := sjson.SetBytes(body, a.limitField(), a.loweredLimit())
	for _, field := range observe.OutputLimits(a.call.dialect) { // vendors differ in which field they obey
		if err == nil && a.call.input.field(field).Type != gjson.Null {
			body, err = sjson.SetBytes(body, field, a.loweredLimit())
		}
	}
	return body, err
}
