package llmgateway

import (
	"errors"
	"net"
	"net/http"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmgateway/routing"
	"github.com/weirhq/weir/plugins"
)

// clientLeft ends an answer whose client has left. No client gets it.
var clientLeft = plugins.Error{Message: "The client left."}

// unreached maps the failure to get an answer from a target to the client's error, and to
// what may follow. late reports that the gateway waited for the first byte long enough.
func (c *call) unreached(target string, late bool, err error) (*plugins.Error, routing.Outcome) {
	if c.ctx.Err() != nil {
		return &clientLeft, routing.Abort
	}
	status, outcome := http.StatusBadGateway, routing.Retry
	if n, ok := errors.AsType[net.Error](err); late || ok && n.Timeout() {
		status = http.StatusGatewayTimeout
	}
	if late {
		outcome = routing.Failover // a second wait at the same target would be as long
	}
	c.h.site.Logger.Error("a provider gave no answer", zap.Stringer("call", c.exchange.Record.ID),
		zap.String("target", target), zap.Error(redact.Upstream(err)))
	return apierror.Unanswered(status), outcome
}

// refuses reports whether a status is outside 2xx.
func refuses(status int) bool { return status < 200 || status > 299 }

// refusal maps the error that a target has answered to the client's error, and to what may
// follow.
func (c *call) refusal(account *llmapp.Account, target string, resp *http.Response) (*plugins.Error, routing.Outcome) {
	if resp.StatusCode < 400 { // a redirect or an upgrade, without a body or with an endless one
		return plugins.Upstream("The provider answered with the status %d, which no API has a use for. "+
			"Its base_url may be wrong.", resp.StatusCode), routing.Failover
	}
	e, outcome := account.API.Error(resp), routing.Abort
	switch status := resp.StatusCode; {
	case (unauthorized(status) || unauthorized(e.Status)) && account.Platform:
		c.h.site.Logger.Error("a provider refuses the platform's credentials", zap.Stringer("call", c.exchange.Record.ID),
			zap.String("target", target), zap.Int("status", status))
		e, outcome = plugins.Upstream("The provider does not accept the gateway's credentials.").WithCode(apierror.UpstreamAuth), routing.Failover
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500:
		outcome = routing.Retry
	}
	return e, outcome
}

// unauthorized reports whether a status refuses a key. Gemini answers 400 and means 401, which
// its plugin corrects.
func unauthorized(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}
