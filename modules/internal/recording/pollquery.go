package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// pollQuery asks a provider about one batch or session.
type pollQuery struct {
	site     *Site
	ctx      context.Context
	account  *providers.Account
	record   *storage.Record // as it was when the round began: it may have been erased since
	recorder Recorder
}

// sessionEnded is the status of a session that uses nothing any more. One that has done its work is idle,
// and goes on when somebody wakes it.
// https://platform.claude.com/docs/en/managed-agents/session-operations
const sessionEnded = "terminated"

// session asks what a session has used so far.
func (q *pollQuery) session() error {
	path := "/v1/sessions/"
	if strings.Contains(q.record.Path, "/agents/sessions") {
		path = "/v1/agents/sessions/"
	}
	path += url.PathEscape(q.record.ResponseID)
	resp, err := q.get(path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := translate.ReadAll(io.LimitReader(resp.Body, maxPolledObject), -1)
	if err != nil {
		return err
	}
	reader := q.exchange(path).Later(resp.Header, 0)
	reader.Write(body)
	reader.Close(true)
	return nil
}

// batch records the calls of a batch if the provider has its results.
func (q *pollQuery) batch() error {
	switch inline, ok := observe.ParseInlineBatch(q.record.Path); {
	case !ok:
		return q.files()
	case inline.Dialect == plugins.Messages:
		return q.messages()
	default:
		version, _, _ := strings.Cut(q.record.Path, "models/")
		return q.results(version+q.record.ResponseID, observe.Results{File: q.record.ResponseID, Batch: q.record.ResponseID, Inline: true})
	}
}

// messages asks Anthropic.
func (q *pollQuery) messages() error {
	id := q.record.ResponseID
	path := "/v1" + observe.MessageBatches + "/" + url.PathEscape(id)
	_, ended, err := q.state(path)
	if err != nil || !ended {
		return err
	}
	return q.results(path+"/results", observe.Results{File: id, Batch: id})
}

// files asks OpenAI, or who is like it. Calls that have failed are in a file of their own, which is read
// first: the other one ends the batch.
func (q *pollQuery) files() error {
	object, ended, err := q.state("/v1/batches/" + url.PathEscape(q.record.ResponseID))
	if err != nil || !ended {
		return err
	}
	for _, name := range []string{"error_file_id", "output_file_id"} {
		file := gjson.GetBytes(object, name).Str
		if file == "" {
			continue
		}
		if err := q.results("/v1/files/"+url.PathEscape(file)+"/content", observe.Results{File: file, Batch: q.record.ResponseID}); err != nil {
			return err
		}
	}
	q.exchange("").Earlier().SeeBatch(q.record.ResponseID, object)
	return nil
}

// state returns the provider's object of the batch, and whether the batch has ended.
func (q *pollQuery) state(path string) (object []byte, ended bool, err error) {
	resp, err := q.get(path)
	if err != nil {
		return nil, false, err
	}
	defer resp.Body.Close()
	if object, err = translate.ReadAll(io.LimitReader(resp.Body, maxPolledObject), -1); err != nil {
		return nil, false, err
	}
	state, ok := observe.ParseBatch(object)
	if !ok || state.ID != q.record.ResponseID {
		return nil, false, pollErrorf("the provider answered no batch")
	}
	return object, state.Ended, nil
}

// results records the calls whose results are at a path.
func (q *pollQuery) results(path string, of observe.Results) error {
	resp, err := q.get(path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	results := q.exchange(path).Results(of, 0)
	if results.batchRecord == nil {
		return pollErrorf("the record of the batch cannot be read, or was erased: none of its calls is recorded")
	}
	results.hasAll = of.File == of.Batch // OpenAI has two files
	chunk := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(chunk)
		results.Write(chunk[:n])
		if err != nil {
			results.Close(errors.Is(err, io.EOF))
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// exchange returns the exchange with a path of the provider. It has no record, and keeps nothing.
func (q *pollQuery) exchange(path string) *Exchange {
	x := &Exchange{Record: *q.record, site: q.site, ctx: q.ctx, recorder: q.recorder}
	x.Record.Path, x.Record.TargetURL = path, q.account.BaseURL+path
	x.Kept.Omit(&x.Record, true, true)
	return x
}

// pollError is an error that may be logged: it has nothing of what the provider answered.
type pollError struct {
	error
	status int // of the answer, 0 if that is not the error
}

// pollErrorf returns a *pollError of no status.
func pollErrorf(format string, args ...any) error {
	return &pollError{fmt.Errorf(format, args...), 0}
}

// isUnseen reports whether a provider has answered that it has no such object, or none for the account. A
// session may be of another workspace, or deleted.
func isUnseen(err error) bool {
	refused, ok := errors.AsType[*pollError](err)
	return ok && (refused.status == http.StatusNotFound || refused.status == http.StatusForbidden)
}

// get asks for a path of the account. It costs nothing, and no budget counts it. The error is a
// *pollError with its status for an answer other than 200.
func (q *pollQuery) get(path string) (*http.Response, error) {
	req, err := q.request(path)
	if err != nil {
		return nil, err
	}
	bill, err := q.site.App.Money().Admit(q.ctx, money.Spending{Org: q.record.Org, Account: q.account, Record: q.record, Files: true, Shadow: true})
	if err != nil {
		return nil, err
	}
	resp, err := bill.Send(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close() // nobody reads it
		return nil, &pollError{fmt.Errorf("the provider answered with the status %d", resp.StatusCode), resp.StatusCode}
	}
	return resp, nil
}

// request returns a request for a path, as the gateway makes it if the provider has the endpoint there,
// else as the proxy does.
func (q *pollQuery) request(path string) (*http.Request, error) {
	if has, ok := q.account.API.(translate.Endpoints); ok {
		to, err := q.account.Target("", nil, (*access.Key)(nil))
		if err != nil {
			return nil, err
		}
		req, err := has.PrepareEndpoint(q.ctx, http.MethodGet, path, to)
		if !errors.Is(err, errors.ErrUnsupported) {
			return req, err
		}
	}
	if !q.account.CanForward() {
		return nil, pollErrorf("the provider %s has nothing that its key alone may read", q.account.Label)
	}
	req, err := http.NewRequestWithContext(q.ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	q.account.Authorize(req.Header)
	return q.account.Direct(req), nil
}
