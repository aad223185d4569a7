package llmgateway

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// fileCall is the lane of requests for files or batches of a provider. The bytes pass unchanged,
// but for the ids.
type fileCall struct {
	a      *attempt // the only one
	call   *call
	file   fileID
	upload capture.Body // the transport may read on when the answer has come
	id     string       // in the path, "" if there is none
	calls  bound.Upload // the calls of a batch in the file that is uploaded
	batch  bound.Batch  // what the calls of the new batch, or of the uploaded file, can use
	names  []string     // names of models in the calls of the new batch
}

// makesBatch reports whether the request makes a batch of the calls in a file, or within the
// request.
func (f *fileCall) makesBatch() bool {
	return f.call.route.pattern == "POST /v1/batches" || f.makesMessageBatch()
}

func (f *fileCall) uploads() bool { return f.call.route.pattern == "POST /v1/files" }

func (h *Handler) serveFiles(w http.ResponseWriter, r *http.Request, at *match) error {
	c := newCall(h, w, r, at.servedRoute, cmp.Or(at.dialect, plugins.Batches))
	c.exchange.Record.Dialect = plugins.Batches // whatever headers and errors the client has
	return c.serve(func() error {
		return apierror.Write(w, c.dialect, plugins.Invalid("Service-Dry-Run", "A file or a batch goes to the provider that has it: there is nothing to tell."))
	}, func() bool {
		f := &fileCall{a: &attempt{candidate: candidate{call: c}, x: c.exchange, client: client{call: c, x: c.exchange, w: w}}, call: c, id: at.id}
		f.a.lane = f
		defer f.calls.Free()
		if err := f.prepare(); err != nil {
			c.refuse(err)
			return false
		}
		outcome, _ := f.a.send(math.MaxInt64) // a file may be long
		if f.endUpload(); outcome != routing.Answered {
			f.a.answerFailure()
			c.writeError(f.a.failure)
		}
		return false
	})
}

// prepare makes the request to the account that has the file, and the bill by which the
// request is sent.
func (f *fileCall) prepare() (err error) {
	x := f.a.x
	if f.uploads() {
		if refused := f.call.h.site.App.Maskers().CheckUnread(&x.Record, "A file"); refused != nil {
			return refused
		}
	}
	if f.a.req, err = f.Request(); err != nil {
		return err
	}
	r := &x.Record
	account := f.file.account
	r.Provider, r.Account, r.Path, r.TargetURL = account.Provider, account.Label, f.a.req.URL.Path, redact.URL(f.a.req.URL.String())
	r.InferenceGeo = observe.Geography(r.Provider, f.a.req.URL.Host, r.Path)
	s := f.a.spending()
	s.Model, s.MaxUsage, s.Files = "", f.maxUsage, true
	if f.makesBatch() {
		r.PassthroughBilling = f.call.h.site.App.Money().PaysWithCredits(r.Org, account)
		if !f.makesMessageBatch() {
			f.batch = x.Earlier().Uploaded(f.file.id, account.BaseURL).CreatedBy(f.call.input.object(f.call.input.body))
			f.names = f.batch.AllModels()
		}
		s.Batch, s.Names = append([]string{}, f.batch.Models()...), f.names
	}
	if x.Bill, err = f.call.h.site.App.Money().Admit(f.call.ctx, s); err == nil {
		f.batch.Reservation = x.Bill.Batch()
		r.Batch = f.batch.Text()
	}
	return err
}

// maxUsage is an upper bound on what a call about files uses: nothing, or what the calls of a
// batch do.
func (f *fileCall) maxUsage(int64) bound.Used {
	if f.makesBatch() {
		return f.batch.MaxUsage(f.call.h.site.App.Catalog(), f.file.account.Provider, f.a.x.Record.CreatedAt.Time())
	}
	return bound.Free()
}

// endUpload counts the bytes of an upload that the provider has read.
func (f *fileCall) endUpload() {
	f.upload.Look(func(_ *capture.Tap, received int64) {
		f.a.x.Record.RequestBytes = max(f.a.x.Record.RequestBytes, received)
		if f.uploads() {
			f.batch = f.calls.Batch()
		}
	})
	f.upload.Detach()
}

// Request implements lane. The request is to the account that has the file.
func (f *fileCall) Request() (*http.Request, error) {
	query := f.call.r.URL.Query()
	body, err := f.findAccount(query.Get("provider"))
	if err != nil {
		return nil, err
	}
	f.a.candidate = f.call.atAccount(f.file.account)
	if err := f.allowFiles(); err != nil {
		return nil, err
	}
	f.calls.Adder = bound.Adder{Catalog: f.call.h.site.App.Catalog(), Provider: f.file.account.Provider}
	if f.uploads() {
		if body, err = f.uploadBody(); err != nil {
			return nil, err
		}
	}
	path := f.call.route.path
	if f.id != "" {
		path = strings.Replace(path, "{id}", url.PathEscape(f.file.id), 1)
	}
	req, err := f.a.endpoint(path)
	if err != nil {
		return nil, err
	}
	f.passQuery(req, query)
	f.call.controls.Warnings = append(f.call.controls.Warnings, f.a.passHeaders(req.Header)...)
	passFields(req.Header, f.call.r.Header, "Content-Type", "Anthropic-Beta", "Anthropic-Version", "Openai-Beta")
	if f.call.input.body == nil { // else the body was decoded
		passFields(req.Header, f.call.r.Header, "Content-Encoding")
	}
	req.Body, req.ContentLength = body.ReadCloser, body.length //nolint:forbidigo // the request to the provider
	return req, nil
}

// requestBody is the body of a request to a provider. The zero requestBody stands for a request without a body.
type requestBody struct {
	io.ReadCloser
	length int64 // bytes, -1 if unknown
}

func bodyOf(data []byte) requestBody {
	return requestBody{io.NopCloser(bytes.NewReader(data)), int64(len(data))}
}

// findAccount finds the account that the request goes to, and the file there. It returns the body of a
// request that creates a batch. provider is the provider that the query names.
func (f *fileCall) findAccount(provider string) (body requestBody, err error) {
	switch {
	case f.id != "":
		var ok bool
		if f.file, ok = f.call.h.openID(f.a.x.Record.Org, f.id); !ok {
			return body, notFound(f.id)
		}
		return body, nil
	case f.makesMessageBatch():
		if err := f.readMessageBatch(); err != nil {
			return body, err
		}
		return bodyOf(f.call.input.sent), nil
	case f.makesBatch():
		if err := f.call.readObject(); err != nil {
			return body, err
		}
		input := strings.Clone(gjson.Get(plugins.View(f.call.input.body), "input_file_id").Str)
		var ok bool
		if f.file, ok = f.call.h.openID(f.a.x.Record.Org, input); !ok {
			return body, plugins.Invalid("input_file_id", "'input_file_id' names no file that was uploaded here: upload it to /v1/files.")
		}
		f.call.input.sent = bytes.ReplaceAll(f.call.input.sent, []byte(`"`+input+`"`), []byte(`"`+f.file.id+`"`))
		return bodyOf(f.call.input.sent), nil
	}
	f.file.account, err = f.accountOfFiles(provider)
	return body, err
}

// uploadBody returns the body of an upload. It reads a file for an account that others use before the
// request is sent. Any other file passes as it comes.
func (f *fileCall) uploadBody() (body requestBody, err error) {
	if f.a.shares() {
		if err := f.readUpload(); err != nil {
			return body, err
		}
		f.calls.Write(f.call.input.body)
		return bodyOf(f.call.input.body), nil
	}
	if f.call.r.Header.Get("Content-Encoding") == "" { // else the provider might read something else
		f.upload.Look(func(t *capture.Tap, _ int64) { t.Open("", &f.calls) })
	}
	f.upload.ReadCloser = f.call.r.Body //nolint:forbidigo // a file passes as it comes
	f.upload.Length = f.call.r.ContentLength
	return requestBody{&f.upload, f.call.r.ContentLength}, nil
}

// readUpload reads a file for an account that others use, and refuses the input of a batch
// whose calls name what the account keeps for them.
func (f *fileCall) readUpload() error {
	if err := f.call.request.read(maxRequest); err != nil {
		return err
	}
	f.call.input.body, f.a.x.Record.RequestBytes = f.call.received.Bytes, f.call.received.Wire
	form := parseForm(f.call.r.Header.Get("Content-Type"), f.call.input.body)
	if form == nil {
		return plugins.Invalid("", "The body of the request is no multipart/form-data.")
	}
	isBatch := slices.ContainsFunc(form.fields, func(field formField) bool {
		return field.name == "purpose" && string(form.body[field.start:field.end]) == "batch"
	})
	number := 0
	for line := range bytes.Lines(bytes.Join(form.files, []byte("\n"))) {
		number++
		switch call, valid := plugins.ParseObject(line); {
		case valid:
			f.addBatched(call)
		case isBatch && len(bytes.TrimSpace(line)) > 0:
			return plugins.Invalid("file", "Line %d of the file is no JSON object.", number)
		}
	}
	return f.a.allowStored(true)
}

// addBatched adds the ids of a call in a batch that name what the provider keeps.
func (f *fileCall) addBatched(call *plugins.Object) {
	var urls []string
	for _, m := range call.Members {
		if m.Name == "url" {
			urls = append(urls, m.Value.Str)
		}
	}
	dialect := plugins.Responses // requests of Responses refer to the most kinds of ids
	if len(urls) == 1 {
		if at := byPath[urls[0]]; at != nil && at.methods[http.MethodPost] != nil {
			dialect = at.methods[http.MethodPost].dialect
		}
	}
	for _, m := range call.Members { // a field that stands twice may be read twice
		if m.Name == "body" {
			body, _ := plugins.ParseObject([]byte(m.Value.Raw))
			f.call.stored.IDs = append(f.call.stored.IDs, bound.StateOf(dialect, body).IDs...)
		}
	}
}

func notFound(id string) *plugins.Error {
	return plugins.Rejected(http.StatusNotFound, "not_found", "No file or batch with the id '%.200s' was made here.", id)
}

// accountOfFiles returns the account of that label, or the first that has the endpoint.
func (f *fileCall) accountOfFiles(label string) (*providers.Account, error) {
	var err error
	for _, account := range f.call.h.site.App.Accounts().Of(f.a.x.Record.Org) {
		if label != "" && account.Label != label {
			continue
		}
		if _, err = f.call.atAccount(account).endpoint(f.call.route.path); err == nil || label != "" {
			return account, err
		}
	}
	if label != "" {
		return nil, plugins.Invalid("provider", "There is no provider '%.64s'.", label)
	}
	return nil, err
}

// allowFiles refuses lists of an account that others use.
func (f *fileCall) allowFiles() error {
	lists := f.file.id == "" && f.call.r.Method == http.MethodGet
	if lists && f.a.shares() {
		return plugins.Invalid("", "%s has the files of other organizations too, and cannot list yours alone. "+
			"Configure it for the organization with a key of its own.", f.file.account.Label).WithCode(unsupportedEndpoint)
	}
	return nil
}

// passQuery gives the provider the client's query, with ids of its own.
func (f *fileCall) passQuery(req *http.Request, query url.Values) {
	passed := req.URL.Query() // of Azure's version
	for name, values := range query {
		if name == "provider" {
			continue
		}
		for i, value := range values {
			if named, ok := f.call.h.openID(f.a.x.Record.Org, value); ok {
				values[i] = named.id
			}
		}
		passed[name] = values
	}
	req.URL.RawQuery = passed.Encode()
}

// Answer implements lane.
func (f *fileCall) Answer(resp *http.Response) (routing.Outcome, *plugins.Error) {
	f.endUpload()
	switch f.call.route.path {
	case "/v1/files/{id}/content":
		return f.passContent(resp, observe.Results{File: f.file.id, Batch: f.file.batch})
	case messageBatchesPath + "/{id}/results":
		return f.passContent(resp, observe.Results{File: f.file.id, Batch: f.file.id})
	}
	return f.passObject(resp)
}

// passObject answers an object, with ids of the gateway.
func (f *fileCall) passObject(resp *http.Response) (routing.Outcome, *plugins.Error) {
	memory := f.call.answerMemory(resp)
	defer memory.Release()
	body, err := translate.ReadAll(memory.Reader(resp.Body), resp.ContentLength)
	if err != nil || !plugins.ValidJSON(body) {
		return f.a.endBroken(plugins.Upstream("The provider broke off its answer, or it is no JSON."))
	}
	if f.makesBatch() || f.uploads() { // results, and the batch, find the record by the object's id
		observer := observe.New(plugins.Batches, f.a.x.Record.Provider, resp.Header)
		observer.Write(body)
		observer.Close()
		f.a.x.Answer = observer
	}
	if f.uploads() {
		f.a.x.Record.Batch = f.batch.Text()
	}
	if f.call.r.Method == http.MethodGet {
		f.a.x.Earlier().SeeBatch(f.file.id, body)
	}
	if body, err = f.sealIDs(body); err != nil {
		return f.a.fail(storage.Failed, apierror.Of(err), routing.Abort)
	}
	f.a.client.writeObject(body, jsonType, resp.Header)
	f.a.finish(true)
	return routing.Answered, nil
}

// sealIDs puts the gateway's ids in place of the provider's, of one object or of a list, and
// the gateway's address of results.
func (f *fileCall) sealIDs(body []byte) ([]byte, error) {
	secrets, err := f.call.h.secrets()
	if err != nil {
		return nil, err
	}
	text := plugins.View(body)
	var out []byte
	end := 0
	var seal func(object gjson.Result)
	seal = func(object gjson.Result) {
		batch := ""
		if object.Get("object").Str == "batch" {
			batch = object.Get("id").Str
		}
		object.ForEach(func(key, v gjson.Result) bool {
			named, address := fileID{account: f.file.account, id: v.Str}, ""
			switch key.Str {
			case "output_file_id", "error_file_id":
				named.batch = batch
			case "id", "input_file_id", "first_id", "last_id":
			case "results_url":
				named.id = object.Get("id").Str
				address = paths.Below(f.call.r, observe.MessageBatches) + "/"
			case "data":
				v.ForEach(func(_, element gjson.Result) bool {
					seal(element)
					return true
				})
				return true
			default:
				return true
			}
			if v.Str == "" {
				return true
			}
			out = append(out, text[end:v.Index]...)
			shown := sealID(secrets, f.a.x.Record.Org, named)
			if address != "" {
				shown = address + shown + "/results"
			}
			out = append(append(append(out, '"'), shown...), '"')
			end = v.Index + len(v.Raw)
			return true
		})
	}
	seal(gjson.Parse(text))
	return append(out, text[end:]...), nil
}

// passContent answers the bytes of a file as they come. If they are the results of a
// batch, each call of the batch is recorded before the client has the call's result.
func (f *fileCall) passContent(resp *http.Response, of observe.Results) (routing.Outcome, *plugins.Error) {
	results := f.a.x.Results(of, int64(f.call.h.MaxBody))
	f.a.x.Record.ResponseTruncated = !f.a.x.Record.ResponseOmitted // nothing of a file is kept
	if values := resp.Header["Content-Disposition"]; values != nil {
		f.a.client.w.Header()["Content-Disposition"] = values
	}
	return f.a.passBytes(resp, func(p []byte) { results.Write(p) }, func(complete bool) {
		results.Close(complete)
	})
}
