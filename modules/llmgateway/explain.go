package llmgateway

import (
	"encoding/json"
	"time"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/storage"
)

// explain answers where the call would go. Nothing is sent, charged or recorded.
func (c *call) explain() error {
	r := &c.exchange.Record
	control.SessionProperties(r)
	r.Dialect, r.Path, r.Referrer, r.CreatedAt = c.dialect, c.r.URL.Path, "gateway", storage.Millis(time.Now())
	defer func() {
		c.received.Release()
		if c.input.reader != nil {
			c.input.reader.Free()
		}
	}()
	targets, err := c.readRequest()
	if err != nil {
		return apierror.Write(c.w, c.dialect, apierror.To(c.r, c.dialect, apierror.Of(err)))
	}
	places, err := c.choose(targets)
	if err != nil {
		return apierror.Write(c.w, c.dialect, apierror.Of(err))
	}
	c.warn(nil)
	c.w.Header().Set("Content-Type", jsonType)
	return json.NewEncoder(c.w).Encode(routing.Explain(r.RequestModel, targets, places, &routing.InProcess, func(t routing.Target) error {
		if !c.key.MayCall(t.Account.Label, t.Model) {
			return access.NotAllowed(t.Name)
		}
		return c.at(t).allow()
	}))
}
