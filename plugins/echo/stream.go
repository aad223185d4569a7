package echo

import (
	"cmp"
	"encoding/base64"
	"errors"
	"iter"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/translate"
)

// defaults are the fields that the gateway demands of requests, and this provider does not.
var defaults = map[string]any{"model": DefaultModel, "max_tokens": math.MaxInt32}

// serveAs answers at the endpoint of an API beside Responses. The gateway's reader makes a
// request of Responses of each, and names the client's fields in errors.
func serveAs(d plugins.Dialect) func(http.ResponseWriter, *http.Request, *exchange) *plugins.Error {
	api, _ := inbound.Of(d)
	return func(w http.ResponseWriter, r *http.Request, x *exchange) *plugins.Error {
		body := []byte(x.body.Raw)
		for field, value := range defaults {
			if x.body.Get(field).String() == "" {
				body, _ = sjson.SetBytes(body, field, value) // of an object, and a plain path
			}
		}
		p, err := api.Parse(body)
		if err == nil {
			err = x.serve(w, r, d, p)
		}
		f, _ := errors.AsType[*plugins.Error](err)
		return f
	}
}

func (x *exchange) serve(w http.ResponseWriter, r *http.Request, d plugins.Dialect, p *translate.Request) error {
	request, f := readRequest(gjson.ParseBytes(p.Raw))
	if f != nil {
		return p.Names.Error(f)
	}
	request.Reasoning = asksForReasoning(x.body, "reasoning_effort", "reasoning", "thinking")
	x.answer(w, r, d, &translate.Request{Raw: p.Raw, Model: request.Model, Stream: p.Stream}, request.Answer())
	return nil
}

// answer writes an answer in a dialect, as the gateway writes those of other providers.
func (x *exchange) answer(w http.ResponseWriter, r *http.Request, d plugins.Dialect, p *translate.Request, reply Answer) {
	api, _ := inbound.Of(d)
	events := &eventWriter{w: w, r: r}
	a := translate.NewAssembler(p, events, translate.Options{Encoder: api.Encoder(p), ID: func(prefix string) string {
		if prefix == "resp_" {
			return x.id(prefix)
		}
		return x.itemID(prefix)
	}})
	sealed := d != plugins.Responses || slices.Contains(p.Include, "reasoning.encrypted_content")
	if !p.Stream {
		reply.tell(a, sealed)
		writeJSON(w, http.StatusOK, a.End())
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	reply.tell(a, sealed)
	if last := a.End(); a.Err() == nil {
		_, _ = events.Write(last)
	}
}

// tell gives the answer to the Assembler in pieces, and with its reasoning a sealed form
// if the client shall have that.
func (reply Answer) tell(a *translate.Assembler, sealed bool) {
	const reasoning, text, firstCall = 0, 1, 2 // the items' keys
	a.Usage(plugins.Usage{Input: reply.Usage.Input, CacheRead: reply.Usage.CacheRead, CacheWrite: reply.Usage.CacheWrite})
	for word := range pieces(reply.Reasoning, " ") {
		a.Summary(reasoning, 0, word)
	}
	if sealed {
		a.Seal(reasoning, seal(reply.Reasoning))
	}
	for word := range pieces(reply.Text, " ") {
		a.Text(text, word)
	}
	for i, c := range reply.Calls {
		a.Call(firstCall+i, "", c.Name)
		for piece := range pieces(c.Arguments, ":") {
			a.Args(firstCall+i, piece)
		}
		a.Close(firstCall + i)
	}
	a.Usage(reply.Usage)
	if reply.Cut {
		a.Finish(translate.ReasonMaxOutputTokens)
	} else {
		a.Finish(translate.ReasonStop)
	}
}

// seal returns reasoning in a form like the encrypted one that only its vendor can read.
func seal(reasoning string) string {
	return base64.StdEncoding.EncodeToString([]byte(reasoning))
}

// eventWriter writes events and flushes them. It is an error if the client is gone.
type eventWriter struct {
	w http.ResponseWriter
	r *http.Request
}

// Write implements io.Writer.
func (e *eventWriter) Write(events []byte) (int, error) {
	n, err := e.w.Write(events)
	_ = http.NewResponseController(e.w).Flush()
	return n, cmp.Or(err, e.r.Context().Err())
}

// pieces splits s after each separator, with nothing lost and no empty piece.
func pieces(s, separator string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for piece := range strings.SplitAfterSeq(s, separator) {
			if piece != "" && !yield(piece) {
				return
			}
		}
	}
}
