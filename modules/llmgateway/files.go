package llmgateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmgateway/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// fileCall is a request for files and batches of a provider. Its bytes pass as they are, but
// for the ids.
type fileCall struct {
	*call
	file   fileID
	upload capture.Body // which the transport may still read when the answer has come
	x      *recording.Exchange
}

// serveFiles answers an endpoint of files and batches.
func (h *Handler) serveFiles(w http.ResponseWriter, r *http.Request, at *match) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &fileCall{call: &call{request: request{h: h, w: w, r: r, ctx: ctx, dialect: plugins.Batches}, route: at.served}}
	if e := c.begin(cancel); e != nil {
		return apierror.Write(w, c.dialect, e)
	}
	defer c.close()
	c.x = &c.exchange
	req, err := c.prepare(at.id)
	if err != nil {
		c.refuse(asError(err))
		return nil
	}
	c.x.Record.Provider, c.x.Record.Path = c.file.account.Provider, req.URL.Path
	c.x.Record.TargetURL = redact.URL(req.URL.String())
	// Credits pay for no batch, and all else of files is free: allowFiles refuses what would
	// have to be paid.
	ticket, err := h.money.Admit(ctx, llmapp.Spending{
		Org: c.x.Record.Org, Key: c.key, Account: c.file.account, AtMost: func() plugins.Cost { return plugins.Cost{} },
	})
	if err != nil {
		c.refuse(asError(err))
		return nil
	}
	resp, err := ticket.Send(req)
	c.upload.Look(func(_ *capture.Tap, received int64) { c.x.Record.RequestBytes += received })
	c.upload.Detach()
	if err != nil {
		e, _ := c.unreached(c.file.account.Label, false, err)
		c.x.Record.Status = plugins.Known(int64(e.Status))
		c.fail(e)
		return nil
	}
	defer resp.Body.Close()
	c.receive(resp)
	return nil
}

// prepare makes the request to the account that has the file.
func (c *fileCall) prepare(id string) (*http.Request, error) {
	org, query := c.x.Record.Org, c.r.URL.Query()
	var body io.ReadCloser
	length := int64(0)
	switch {
	case id != "":
		var ok bool
		if c.file, ok = c.h.openID(org, id); !ok {
			return nil, notFound(id)
		}
	case c.route.pattern == "POST /v1/batches":
		if err := c.readBody(); err != nil {
			return nil, err
		}
		if err := translate.CheckObject(c.body); err != nil {
			return nil, err
		}
		input := strings.Clone(gjson.Get(text(c.body), "input_file_id").Str)
		var ok bool
		if c.file, ok = c.h.openID(org, input); !ok {
			return nil, plugins.Invalid("input_file_id", "'input_file_id' names no file that was uploaded here: upload it to /v1/files.")
		}
		c.sent = bytes.ReplaceAll(c.sent, []byte(`"`+input+`"`), []byte(`"`+c.file.id+`"`))
		body, length = io.NopCloser(bytes.NewReader(c.sent)), int64(len(c.sent))
	default:
		account, err := c.accountOfFiles(query.Get("provider"))
		if err != nil {
			return nil, err
		}
		c.file.account = account
	}
	account := c.file.account
	if err := c.allowFiles(account); err != nil {
		return nil, err
	}
	switch uploads := c.route.pattern == "POST /v1/files"; {
	case uploads && c.shares(account):
		if err := c.readUpload(account); err != nil {
			return nil, err
		}
		body, length = io.NopCloser(bytes.NewReader(c.body)), int64(len(c.body))
	case uploads:
		c.upload.ReadCloser = c.r.Body //nolint:forbidigo // a file passes as it comes
		body, length = &c.upload, c.r.ContentLength
	}
	path := c.route.path
	if id != "" {
		path = strings.Replace(path, "{id}", url.PathEscape(c.file.id), 1)
	}
	req, err := c.endpoint(account, path)
	if err != nil {
		return nil, err
	}
	c.passQuery(req, query)
	c.passIdempotencyKey(req, account)
	for _, name := range []string{"Content-Type", "Content-Encoding", "Openai-Beta"} {
		if values := c.r.Header[name]; values != nil && (name != "Content-Encoding" || c.body == nil) {
			req.Header[name] = values
		}
	}
	req.Body, req.ContentLength = body, length //nolint:forbidigo // the request to the provider
	return req, nil
}

// readUpload reads a file for an account that others use, and refuses the input of a batch
// whose calls name what the account keeps for them.
func (c *fileCall) readUpload(account *llmapp.Account) error {
	if err := c.request.read(maxRequest); err != nil {
		return err
	}
	c.body, c.x.Record.RequestBytes = c.received.Bytes, c.received.Wire
	f := parseForm(c.r.Header.Get("Content-Type"), c.body)
	if f == nil {
		return plugins.Invalid("", "The body of the request is no multipart/form-data.")
	}
	isBatch := slices.ContainsFunc(f.fields, func(field formField) bool {
		return field.name == "purpose" && string(f.body[field.start:field.end]) == "batch"
	})
	number := 0
	for line := range bytes.Lines(bytes.Join(f.files, []byte("\n"))) {
		number++
		call := gjson.ParseBytes(line)
		switch valid := plugins.ValidJSON(line) && call.IsObject(); {
		case valid:
			c.addBatched(call)
		case isBatch && len(bytes.TrimSpace(line)) > 0:
			return plugins.Invalid("file", "Line %d of the file is no JSON object.", number)
		}
	}
	return c.allowStored(account)
}

// addBatched adds what a call in a batch refers to at the provider.
func (c *fileCall) addBatched(call gjson.Result) {
	dialect := plugins.Responses // which refers to the most
	if at := byPath[call.Get("url").Str]; at != nil && at.methods[http.MethodPost] != nil {
		dialect = at.methods[http.MethodPost].dialect
	}
	call.ForEach(func(key, body gjson.Result) bool { // a field that stands twice may be read twice
		if key.Str == "body" {
			c.stored.ids = append(c.stored.ids, findStoredState(dialect, []byte(body.Raw)).ids...)
		}
		return true
	})
}

func notFound(id string) *plugins.Error {
	return rejected(http.StatusNotFound, "not_found", "No file or batch with the id '"+id[:min(len(id), 200)]+"' was made here.")
}

// endpoint is the request to a path of an account, which may lack it.
func (c *fileCall) endpoint(account *llmapp.Account, path string) (*http.Request, error) {
	has, ok := account.API.(translate.Endpoints)
	if !ok {
		return nil, c.noEndpoint(routing.Target{Account: account})
	}
	req, err := has.PrepareEndpoint(c.ctx, c.r.Method, path, account.Target("", nil))
	if errors.Is(err, errors.ErrUnsupported) {
		err = c.noEndpoint(routing.Target{Account: account})
	}
	return req, err
}

// accountOfFiles returns the account of that label, or the first that has the endpoint.
func (c *fileCall) accountOfFiles(label string) (*llmapp.Account, error) {
	var err error
	for _, account := range c.h.site.App.Accounts(c.x.Record.Org) {
		if label != "" && account.Label != label {
			continue
		}
		if _, err = c.endpoint(account, c.route.path); err == nil || label != "" {
			return account, err
		}
	}
	if label != "" {
		return nil, plugins.Invalid("provider", "There is no provider '%.64s'.", label)
	}
	return nil, err
}

// allowFiles refuses what an organisation must not do at an account that others use.
func (c *fileCall) allowFiles(account *llmapp.Account) error {
	if c.h.site.App.PaysWithCredits(c.x.Record.Org, account) {
		e := plugins.Invalid("", "Files and batches are not paid with credits: the provider tells what a batch costs when its results are downloaded. "+
			"Configure %s for the organization with a key of its own.", account.Label)
		e.Code = unsupportedEndpoint
		return e
	}
	lists := c.file.id == "" && c.r.Method == http.MethodGet
	if lists && c.shares(account) {
		e := plugins.Invalid("", "%s has the files of other organizations too, and cannot list yours alone. "+
			"Configure it for the organization with a key of its own.", account.Label)
		e.Code = unsupportedEndpoint
		return e
	}
	return nil
}

// passQuery gives the provider the client's query, with ids of its own.
func (c *fileCall) passQuery(req *http.Request, query url.Values) {
	passed := req.URL.Query() // of Azure's version
	for name, values := range query {
		if name == "provider" {
			continue
		}
		for i, value := range values {
			if f, ok := c.h.openID(c.x.Record.Org, value); ok {
				values[i] = f.id
			}
		}
		passed[name] = values
	}
	req.URL.RawQuery = passed.Encode()
}

// fail ends a call that was sent, and has no answer but an error.
func (c *fileCall) fail(e *plugins.Error) {
	c.x.Record.ErrorType = e.Type
	end := storage.Complete
	if c.ctx.Err() != nil {
		end = storage.ClientAborted
	}
	c.x.End(end)
	c.writeError(e)
}

// receive passes the answer on.
func (c *fileCall) receive(resp *http.Response) {
	c.x.Record.Status = plugins.Known(int64(resp.StatusCode))
	for _, name := range []string{"Content-Type", "Content-Disposition", "X-Request-Id"} {
		if values := resp.Header[name]; values != nil {
			c.w.Header()[name] = values
		}
	}
	switch {
	case refuses(resp.StatusCode):
		e, _ := c.refusal(c.file.account, c.file.account.Label, resp)
		c.fail(e)
	case c.route.path == "/v1/files/{id}/content":
		c.passContent(resp)
	default:
		c.passObject(resp)
	}
}

// passObject answers an object, with ids of the gateway.
func (c *fileCall) passObject(resp *http.Response) {
	body, err := translate.ReadAll(io.LimitReader(resp.Body, maxResponse+1), resp.ContentLength)
	if err != nil || len(body) > maxResponse || !plugins.ValidJSON(body) {
		c.fail(plugins.Upstream("The provider broke off its answer, or it is no JSON."))
		return
	}
	made := c.route.pattern == "POST /v1/batches"
	if made { // the results belong to who made the batch
		observer := observe.New(plugins.Batches, c.x.Record.Provider, resp.Header)
		observer.Write(body)
		observer.Close()
		c.x.Answer = observer
	}
	if body, err = c.sealIDs(body); err != nil {
		c.fail(asError(err))
		return
	}
	c.x.Record.ResponseBytes = int64(len(body))
	c.x.Kept.Response(&c.x.Record, storage.Body{Type: jsonType, Data: body}, int64(c.h.MaxBody), false)
	c.x.Commit(storage.Complete)
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	end := storage.Complete
	c.w.WriteHeader(http.StatusOK)
	if _, err := c.w.Write(body); err != nil {
		end = storage.ClientAborted
	}
	c.x.End(end)
}

// sealIDs puts the gateway's ids in place of the provider's, of one object or of a list.
func (c *fileCall) sealIDs(body []byte) ([]byte, error) {
	m, err := c.h.memory()
	if err != nil {
		c.h.site.Logger.Error(unreadableSecret, zap.Error(err))
		return nil, err
	}
	whole := text(body)
	var out []byte
	end := 0
	var seal func(object gjson.Result)
	seal = func(object gjson.Result) {
		batch := ""
		if object.Get("object").Str == "batch" {
			batch = object.Get("id").Str
		}
		object.ForEach(func(key, v gjson.Result) bool {
			f := fileID{account: c.file.account, id: v.Str}
			switch key.Str {
			case "output_file_id", "error_file_id":
				f.batch = batch
			case "id", "input_file_id", "first_id", "last_id":
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
			out = append(out, whole[end:v.Index]...)
			out = append(append(append(out, '"'), m.sealID(c.x.Record.Org, f)...), '"')
			end = v.Index + len(v.Raw)
			return true
		})
	}
	seal(gjson.Parse(whole))
	return append(out, whole[end:]...), nil
}

// passContent answers the bytes of a file as they come. If they are the results of a
// batch, each call of it is recorded before the client has its result.
func (c *fileCall) passContent(resp *http.Response) {
	results := c.x.Results(observe.Results{File: c.file.id, Batch: c.file.batch}, int64(c.h.MaxBody))
	c.x.Record.ResponseTruncated = !c.x.Record.ResponseOmitted // nothing of a file is kept
	if length := resp.Header["Content-Length"]; length != nil && resp.ContentLength >= 0 {
		c.w.Header()["Content-Length"] = length
	}
	out := client{w: c.w}
	c.w.WriteHeader(http.StatusOK)
	last, whole := out.passMost(resp.Body, func(p []byte) {
		results.Write(p)
		c.x.Record.ResponseBytes += int64(len(p))
	}, out.write)
	if whole {
		results.Close()
		c.x.Commit(storage.Complete)
		out.write(last)
	}
	switch {
	case out.err != nil || c.r.Context().Err() != nil:
		c.x.End(storage.ClientAborted)
	case !whole:
		c.x.End(storage.UpstreamAborted)
		panic(http.ErrAbortHandler) // a client must not take what it has for all
	default:
		c.x.End(storage.Complete)
	}
}
