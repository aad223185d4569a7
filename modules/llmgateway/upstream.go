package llmgateway

import (
	"net/http"
	"regexp"
	"strings"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
)

// clientLeft ends an answer whose client has left. No client gets this error.
var clientLeft = plugins.Error{Message: "The client left."}

// unreached maps the failure to get an answer to the client's error, and to
// what may follow. late reports that the gateway waited for the first byte long enough.
func (a *attempt) unreached(late bool, err error) (*plugins.Error, routing.Outcome) {
	if a.call.ctx.Err() != nil {
		return &clientLeft, routing.Abort
	}
	status, outcome := apierror.UnansweredStatus(err), routing.Retry
	if late {
		status, outcome = http.StatusGatewayTimeout, routing.Failover // a second wait at the same target would be as long
	}
	a.call.h.site.Logger.Error("a provider gave no answer", zap.Stringer("call", a.call.exchange.Record.ID),
		zap.String("target", a.target.Name), zap.String("host", a.req.URL.Host), zap.Error(redact.Upstream(err)))
	return apierror.Unanswered(status, a.req.URL.Host, err), outcome
}

// refuses reports whether a status is outside 2xx.
func refuses(status int) bool { return status < 200 || status > 299 }

// refusal maps the error that the provider has answered, or has stated in an answer that began as
// a success, to the client's error, and to what may follow.
func (a *attempt) refusal(resp *http.Response) (*plugins.Error, routing.Outcome) {
	if refuses(resp.StatusCode) && resp.StatusCode < 400 { // a redirect or an upgrade, without a body or with an endless one
		return plugins.Upstream("The provider answered with the status %d, which no API has a use for. "+
			"Its base_url may be wrong.", resp.StatusCode), routing.Failover
	}
	e := a.target.Account.API.Error(resp)
	if e.Status < 400 { // nothing in an answer that began as a success tells
		e.Status = http.StatusBadGateway
	}
	return a.blame(e, resp.StatusCode)
}

// blame decides whose fault a failure is, and what may follow. e is what the provider states, and status
// the status of its answer.
func (a *attempt) blame(e *plugins.Error, status int) (*plugins.Error, routing.Outcome) {
	if !refuses(status) {
		status = e.Status
	}
	a.target.Account.HideAccount(e)
	a.empty = e.EmptyAccount()
	switch {
	case a.call.dialect.CountsTokens() && lacksEndpoint(status) && !strings.Contains(e.Message, a.target.Model): // nor is it the model that is not found
		return noEndpoint(a.target), routing.Failover
	case a.target.Account.IsPlatformAccountError(e, status):
		a.call.h.site.Logger.Error("a provider refuses the platform's credentials", zap.Stringer("call", a.call.exchange.Record.ID),
			zap.String("target", a.target.Name), zap.Int("status", status), zap.Bool("account_empty", a.empty))
		return plugins.Upstream("The provider does not accept the gateway's credentials.").WithCode(apierror.UpstreamAuth), routing.Failover
	case a.empty:
		if e.Status != http.StatusTooManyRequests && e.Status != http.StatusPaymentRequired { // or the client would look for the fault at its request, or its key
			empty := plugins.Refused(http.StatusPaymentRequired, e.Message)
			empty.Reported = e.Reported
			e = empty
		}
		return e, routing.Failover
	case a.lacksModel(status, e):
		return e, routing.Failover
	case e.Param == "reasoning.summary" && !a.to.NoSummary && a.call.dialect != plugins.Responses: // which the client did not ask for by this name
		a.target.Account.AskNoSummary(a.target.Model)
		return e, routing.Again
	case e.RefusesReasoning() && !a.dropsReasoning && !a.call.controls.Strict:
		return e, routing.Again
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500:
		return e, routing.Retry
	}
	return e, routing.Abort
}

// lacksEndpoint reports whether a status says that a server does not have what a request is for.
func lacksEndpoint(status int) bool {
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented
}

// lacksModel reports whether a provider does not have the model, or the path, or takes no request of this
// size in its plan, as Groq says with 413. The client has no part in that where another target is left.
// If the request names what a provider keeps, such as a file, that may be missing instead: no other
// target has it, unless the provider says that it is the model.
func (a *attempt) lacksModel(status int, e *plugins.Error) bool {
	switch {
	case e.Code == "model_decommissioned": // Groq, with 400
		return true
	case status == http.StatusRequestEntityTooLarge:
		return e.Code == "rate_limit_exceeded"
	case status != http.StatusNotFound:
		return lacksEndpoint(status)
	}
	namesModel := strings.Contains(e.Message, a.target.Model) || modelWords.MatchString(e.Reported+" "+e.Message)
	return namesModel || a.call.input.form == nil && len(bound.StateOf(a.call.dialect, a.call.input.object(a.call.input.sent)).IDs) == 0
}

// modelWords are what vendors call a model in an error: Azure a deployment, Databricks and OpenRouter an
// endpoint.
var modelWords = regexp.MustCompile(`(?i)model|deployment|endpoint`)
