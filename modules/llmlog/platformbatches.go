package llmlog

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// checkBatch refuses what an account that others use keeps for them: batches that no record shows
// to be the organisation's, and the list of all.
func (x *exchange) checkBatch() *plugins.Error {
	b, ok := observe.ParseInlineBatch(x.rec.Record.Path)
	switch {
	case !ok || b.Creates && x.r.Method == http.MethodPost || !x.h.site.App.Money().Shares(x.rec.Record.Org, x.account):
		return nil
	case b.ID == "":
		return plugins.Rejected(http.StatusForbidden, notPayable, "%s has the batches of others too, and cannot list yours alone. Configure it for the organization with a key of its own.", x.account.Label)
	case !x.rec.Earlier().MadeBatch(b.ID, x.account.BaseURL):
		return plugins.Rejected(http.StatusNotFound, "not_found", "No batch with the id '%.200s' was made here.", b.ID)
	}
	return nil
}

// maxAddressed bounds an answer with addresses, in bytes, where there is memory for as many.
const maxAddressed = 64 << 20

// addressWriter replaces the address of a batch's results in the answer of the provider by that of the
// proxy: libraries would send the key of Weir to the provider.
type addressWriter struct {
	http.ResponseWriter
	batches string // the address of all batches at the proxy
	memory  *admission.Answer

	status  int
	body    []byte
	refused *plugins.Error // there is no memory for the answer, nil if there is
}

// WriteHeader implements http.ResponseWriter.
func (a *addressWriter) WriteHeader(status int) {
	if status < http.StatusOK {
		a.ResponseWriter.WriteHeader(status)
		return
	}
	a.status = status
}

// Write implements http.ResponseWriter.
func (a *addressWriter) Write(p []byte) (int, error) {
	if a.refused == nil {
		a.refused = a.memory.Grow(int64(len(a.body) + len(p)))
	}
	if a.refused == nil {
		a.body = append(a.body, p...)
	}
	return len(p), nil
}

// FlushError is what http.ResponseController calls: all goes out at once.
func (a *addressWriter) FlushError() error { return nil }

// Close sends the answer if it is whole.
func (a *addressWriter) Close(complete bool) {
	defer a.memory.Release()
	if a.status == 0 || !complete {
		return
	}
	if a.refused != nil {
		a.Header().Del("Content-Encoding")
		_ = apierror.Write(a.ResponseWriter, plugins.Messages, a.refused)
		return
	}
	body := a.body
	if a.status < http.StatusMultipleChoices {
		if !plugins.ValidJSON(body) { // in which an address may be hidden
			a.Header().Del("Content-Encoding")
			_ = apierror.Write(a.ResponseWriter, plugins.Messages, plugins.Upstream("The provider answered with something that is no JSON."))
			return
		}
		body = a.replaced(body)
	}
	a.Header().Set("Content-Length", strconv.Itoa(len(body)))
	a.ResponseWriter.WriteHeader(a.status)
	_, _ = a.ResponseWriter.Write(body) // the client may have left
}

// replaced returns the JSON of a batch, or of a list of them, with the proxy's addresses.
func (a *addressWriter) replaced(body []byte) (out []byte) {
	answer := gjson.Parse(plugins.View(body))
	end := 0
	replace := func(_, batch gjson.Result) bool {
		batch.ForEach(func(key, v gjson.Result) bool {
			if key.Str == "results_url" && v.Type == gjson.String {
				out = append(out, body[end:v.Index]...)
				address, _ := json.Marshal(a.batches + "/" + batch.Get("id").Str + "/results") // a string
				out = append(out, address...)
				end = v.Index + len(v.Raw)
			}
			return true
		})
		return true
	}
	replace(gjson.Result{}, answer)
	answer.Get("data").ForEach(replace)
	return append(out, body[end:]...)
}
