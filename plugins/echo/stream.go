package echo

import (
	"cmp"
	"encoding/base64"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/translate"
)

// serve answers at the endpoint of a dialect whose answers repeat nothing of the request.
func serve(d plugins.Dialect, parse func(gjson.Result) (Request, *plugins.Error)) func(http.ResponseWriter, *http.Request, *exchange) *plugins.Error {
	return func(w http.ResponseWriter, r *http.Request, x *exchange) *plugins.Error {
		asked, f := parse(x.body)
		if f != nil {
			return f
		}
		p := &translate.Request{Raw: []byte(x.body.Raw), Model: asked.Model, Stream: x.body.Get("stream").Bool()}
		x.answer(w, r, d, p, asked.Answer())
		return nil
	}
}

// answer writes an answer in a dialect, as the gateway writes those of other providers.
func (x *exchange) answer(w http.ResponseWriter, r *http.Request, d plugins.Dialect, p *translate.Request, said Answer) {
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
		said.tell(a, sealed)
		writeJSON(w, http.StatusOK, a.End())
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	said.tell(a, sealed)
	if last := a.End(); a.Err() == nil {
		_, _ = events.Write(last)
	}
}

// tell gives the answer to the Assembler in pieces, and with its reasoning a sealed form
// if the client shall have that.
func (said Answer) tell(a *translate.Assembler, sealed bool) {
	const reasoning, text, firstCall = 0, 1, 2 // the items' keys
	a.Usage(plugins.Usage{Input: said.Usage.Input, CacheRead: said.Usage.CacheRead, CacheWrite: said.Usage.CacheWrite})
	for word := range pieces(said.Reasoning, " ") {
		a.Summary(reasoning, 0, word)
	}
	if sealed {
		a.Seal(reasoning, seal(said.Reasoning))
	}
	for word := range pieces(said.Text, " ") {
		a.Text(text, word)
	}
	for i, c := range said.Calls {
		a.Call(firstCall+i, "", c.Name)
		for piece := range pieces(c.Arguments, ":") {
			a.Args(firstCall+i, piece)
		}
		a.Close(firstCall + i)
	}
	a.Usage(said.Usage)
	if said.Cut {
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
