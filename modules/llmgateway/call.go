package llmgateway

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/modules/llmgateway/mcptools"
	"github.com/weirhq/weir/modules/llmgateway/socket"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// call is a request of a client that calls a model. Its attempts read it, and change nothing
// in it but mcp.
type call struct {
	request
	input        input
	continuation continuation
	route        *servedRoute // the endpoint

	exchange *recording.Exchange
	stored   bound.State     // what the request refers to at a provider
	mcp      *mcptools.Tools // that the gateway calls, nil until an attempt at a target without MCP makes them

	shadows bool // the call is made beside the caller's, who does not see it

	variants map[*routing.Choice]*call // with the parameters of aliases, nil without any

	cache cacheLookup
	nodes *affinity // what other nodes know of the conversation, nil before it is asked for

	streamsBackground bool // a call in the background was asked for a stream
}

func (h *Handler) serveCall(w http.ResponseWriter, r *http.Request, at *match) error {
	c := newCall(h, w, r, at.servedRoute, at.dialect)
	if c.dialect == plugins.Compaction {
		c.input.compaction = new(compaction)
	}
	c.continuation.state.PreviousResponseID = socket.Continued(r.Context())
	return c.serve(c.explain, func() (detached bool) {
		targets, err := c.readRequest()
		if err != nil {
			c.refuse(err)
			return false
		}
		if reply := c.cachedAnswer(targets); reply != nil {
			c.reply(reply)
			return false
		}
		if c.continuation.state.Background {
			return c.runInBackground(targets)
		}
		return c.beginShadows(c.answer(targets))
	})
}

func newCall(h *Handler, w http.ResponseWriter, r *http.Request, route *servedRoute, d plugins.Dialect) *call {
	c := &call{request: request{h: h, w: w, r: r, dialect: d}, input: input{dialect: d}, route: route, exchange: new(recording.Exchange)}
	c.input.api, _ = inbound.Of(d)
	return c
}

// serve admits the call, begins its record, and makes it: of a model, or about a file or batch. A dry
// run is answered by explain. answer returns true if the call goes on without its client, and is closed
// then.
func (c *call) serve(explain func() error, answer func() (detached bool)) error {
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	c.ctx = ctx
	if e := c.admit(&c.exchange.Record); e != nil {
		return apierror.Write(c.w, c.dialect, e)
	}
	if c.controls.DryRun {
		return explain()
	}
	c.begin(cancel)
	detached := false
	defer func() {
		if !detached {
			c.close()
		}
	}()
	detached = answer()
	return nil
}

func (c *call) close() {
	for _, v := range c.variants {
		if v.mcp != nil && v.mcp != c.mcp {
			v.mcp.Close()
		}
	}
	if c.mcp != nil {
		c.mcp.Close()
	}
	c.exchange.Close()
	c.received.Release()
	if c.input.reader != nil {
		c.input.reader.Free()
	}
}

// begin begins the record.
func (c *call) begin(cancel context.CancelFunc) {
	r := &c.exchange.Record
	control.SessionProperties(r)
	r.Dialect, r.Path, r.Referrer = cmp.Or(r.Dialect, c.dialect), c.r.URL.Path, "gateway"
	c.exchange.Begin(c.ctx, c.h.site, c.controls, cancel)
	c.w.Header()["Service-Id"] = []string{r.ID.String()}
}

// readRequest reads the body, and returns the targets that it names.
func (c *call) readRequest() ([]routing.Target, error) {
	if err := c.readBody(); err != nil {
		return nil, err
	}
	model, err := c.model()
	if err != nil {
		return nil, err
	}
	if c.dialect.OfResponses() {
		if err := c.checkSize(c.input.body, "input"); err != nil {
			return nil, err
		}
		if err := c.readBackground(); err != nil {
			return nil, err
		}
	}
	r := &c.exchange.Record
	r.RequestModel = strings.ToValidUTF8(model[:min(len(model), routing.MaxModel)], "")

	targets, err := c.resolve(model)
	if err != nil {
		return nil, err
	}
	if c.dialect.OfResponses() {
		if err := c.restoreState(targets); err != nil {
			return nil, err
		}
		switch {
		case c.dialect == plugins.Compaction:
			c.input.compaction.userMessages = latestUserMessages(c.input.sent)
		case c.dialect == plugins.Responses && history.EndsWithTrigger(c.input.sent):
			if c.continuation.state.ConversationID != "" {
				return nil, plugins.Unsupported("conversation", "A conversation is not compacted: begin another one with the compaction.")
			}
			c.input.compaction = new(compaction)
		}
		if c.input.sent, err = c.h.openCompactions(r.Org, c.input.sent); err != nil {
			return nil, c.input.names.Error(err)
		}
	}
	c.join()
	if c.input.form == nil {
		c.stored = bound.StateOf(c.dialect, c.input.object(c.input.sent))
		if targets, err = c.divert(targets); err != nil {
			return nil, err
		}
		if targets, err = c.openFiles(targets); err != nil {
			return nil, err
		}
	}
	return c.targetsWithState(targets)
}

func (c *call) model() (string, error) {
	if c.dialect == plugins.Realtime {
		return c.handshakeModel()
	}
	if c.route.native {
		c.input.form = parseForm(c.r.Header.Get("Content-Type"), c.input.body)
	}
	if c.input.form == nil && !c.input.isObject() {
		return "", c.malformed()
	}
	named := c.input.field("model")
	switch {
	case !named.Exists() && c.route.model != "":
		return c.route.model, nil
	case named.Str == "":
		return "", c.malformed()
	}
	return strings.Clone(named.Str), nil // a copy, because the model's name outlives the body
}

// join finds which call this one continues. A dry run is none that others continue.
func (c *call) join() {
	if !c.controls.DryRun {
		c.exchange.Join(c.continues())
	}
}

// continues returns what tells which call this one continues: the outline of the request, and the
// record that it names.
func (c *call) continues() (outline *observe.Outline, previous uuid.UUID) {
	outline = c.input.reader.Outline()
	if id := c.continuation.state.PreviousResponseID; id != "" && outline != nil && outline.PreviousResponse == id { // it was found
		if record, ours := history.RecordOf(id); ours {
			previous = record
		}
	}
	return outline, previous
}

// resolve returns the targets of a model.
func (c *call) resolve(model string) ([]routing.Target, error) {
	targets, warnings, err := c.h.site.App.Resolver(c.exchange.Record.Org).Resolve(model)
	c.controls.Warnings = append(c.controls.Warnings, warnings...)
	return targets, err
}

// divert returns the targets of the alias that a budget puts in place of the model. A call
// keeps its targets if it refers to what its provider keeps, or if the call is no
// conversation.
func (c *call) divert(targets []routing.Target) ([]routing.Target, error) {
	if c.stored.Field != "" || len(observe.OutputLimits(c.dialect)) == 0 {
		return targets, nil
	}
	alias, budget := c.h.site.App.Money().Diversion(c.ctx, c.at(targets[0]).spending())
	if alias == "" {
		return targets, nil
	}
	c.controls.Warnings = append(c.controls.Warnings, fmt.Sprintf("model: %s is called, because much of the budget %s is spent", alias, budget.Name))
	return c.resolve(alias)
}

// readBody reads the body, and takes what the record keeps of it.
func (c *call) readBody() error {
	err := c.request.read(maxRequest)
	c.input.body, c.exchange.Record.RequestBytes = c.received.Bytes, c.received.Wire
	c.input.sent = c.input.body
	r := &c.exchange.Record
	c.input.reader = observe.NewRequestReader(c.dialect)
	c.input.reader.Write(c.input.body)
	k := &c.exchange.Kept
	k.Request(r, storage.Body{Type: c.r.Header.Get("Content-Type"), Data: c.input.body}, int64(c.h.MaxBody), false)
	k.Media(r, c.input.reader.Request().Media)
	if !r.RequestOmitted {
		control.ReadUser(r, c.input.reader.Request().User)
	}
	if err == nil {
		if refused := c.h.site.App.Maskers().Check(r, c.input.body); refused != nil {
			return refused
		}
	}
	return err
}

// readObject is readBody for a body that must be a JSON object.
func (c *call) readObject() error {
	if err := c.readBody(); err != nil {
		return err
	}
	return translate.CheckObject(c.input.body)
}

// parsed returns the request as it is translated, and parses it once.
func (c *call) parsed() (*translate.Request, error) {
	in := &c.input
	if in.neutral != nil || in.parseErr != nil {
		return in.neutral, in.parseErr
	}
	if !c.dialect.OfResponses() { // the size of a request of Responses is checked before
		in.parseErr = c.checkSize(in.sent, "messages")
	}
	if in.parseErr == nil {
		in.neutral, in.parseErr = in.parse()
	}
	return in.neutral, in.parseErr
}

// malformed returns the error for a body that names no model.
func (c *call) malformed() error {
	if c.dialect.OfResponses() {
		if _, err := c.parsed(); err != nil {
			return err
		}
	} else if c.input.form == nil && !plugins.ValidJSON(c.input.body) {
		what := "JSON"
		if c.route.native {
			what = "JSON, and no form either"
		}
		return plugins.Invalid("", "The body of the request is not valid %s.", what)
	}
	return translate.Missing("model")
}

// noAccount stands for the account in the records of calls that reach no account.
var noAccount = &providers.Account{Provider: llmapp.NoProvider}

// refuse answers a call that was not sent to any provider.
func (c *call) refuse(err error) {
	c.exchange.Record.Provider = noAccount.Provider
	c.reply(recording.Refuse(c.dialect, apierror.To(c.r, c.dialect, apierror.Of(err))))
}

// reply gives the client an answer of Weir itself, when its record stands.
func (c *call) reply(a *recording.LocalReply) {
	x := c.exchange
	x.Reply(a)
	x.Keep(a, int64(c.h.MaxBody))
	end := storage.Complete
	if a.Error != nil && c.ctx.Err() != nil {
		x.Record.Status, x.Record.ErrorType = plugins.Known(storage.StatusClientLeft), ""
		end = storage.ClientAborted
	}
	x.Commit(end)
	switch {
	case a.Error != nil:
		c.writeError(a.Error)
	default:
		c.warn(nil)
		if a.Write(c.w) != nil {
			end = storage.ClientAborted
		}
	}
	x.End(end)
	x.Release()
}

// writeError answers an error unless the client has left. If the process ends, the client is
// still there.
func (c *call) writeError(e *plugins.Error, attempts ...apierror.Attempt) {
	switch {
	case c.r.Context().Err() != nil: // a client that has closed only its own side reads it
		e, attempts = plugins.Rejected(storage.StatusClientLeft, "client_closed_request", "The client closed the connection before there was an answer."), nil
	case c.ctx.Err() != nil:
		e, attempts = plugins.Unavailable("server_error", 0, "The gateway is shutting down."), nil
	}
	c.warn(nil)
	_ = apierror.Write(c.w, c.dialect, e, attempts...) // the client is gone
}

// maxWarnings bounds how many warnings a client gets: Node.js refuses an answer with
// headers of over 16 KiB.
const maxWarnings = 50

// warn sets the header of the warnings of the call and of an attempt.
func (c *call) warn(warnings []string) {
	all := append(slices.Clip(c.controls.Warnings), warnings...)
	if more := len(all) - maxWarnings; more > 0 {
		all = append(all[:maxWarnings:maxWarnings], fmt.Sprintf("and %d more", more))
	}
	if len(all) > 0 {
		c.w.Header()["Service-Warnings"] = all
	}
}
