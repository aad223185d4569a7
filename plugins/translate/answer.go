package translate

import (
	"bytes"
	"cmp"
	"io"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/streams"
)

const (
	// maxObject is how long an answer that is not a stream may be, in bytes. A longer one is
	// cut off, and so is not JSON.
	maxObject = 64 << 20
	// maxError is how much of the body of an error is read, in bytes.
	maxError = 1 << 20
	// maxPreallocated is how much memory the Content-Length of an answer can
	// claim before its body has come, in bytes.
	maxPreallocated = 1 << 20
)

// ReadAnswer reads a successful answer, for Provider.Decode: object gets one that
// is not a stream, and event the name and data of each event of one
// that is, until it reports that no more may follow. What is a stream depends on what
// comes, and not on what was asked for or is declared.
func ReadAnswer(resp *http.Response, a *Assembler, object func(body []byte), event func(name, data []byte) bool) error {
	kind, body := streams.Detect(resp.Body)
	events := streams.ReadSSE
	switch kind {
	case streams.Events:
	case streams.Lines:
		events = streams.ReadNDJSON
	default:
		complete, err := ReadObject(body, resp.ContentLength)
		switch {
		case err != nil:
			return err
		case !bytes.HasPrefix(complete, []byte("[")):
			object(complete)
			a.FailAsStated(complete)
			return nil
		}
		list, _ := a.ParseJSON(complete) // a stream of Gemini's without alt=sse
		list.ForEach(func(_, v gjson.Result) bool { return event(nil, []byte(v.Raw)) })
		return nil
	}
	var last []byte // of the events before any content
	defer func() { a.FailAsStated(last) }()
	for e, err := range events(body) {
		if err != nil {
			return err
		}
		data := bytes.TrimSpace(e.Data)         // some write `[DONE] `
		if bytes.HasPrefix(data, []byte(":")) { // a comment in the place of data, which keeps the connection alive
			continue
		}
		if !a.seen.Content && len(data) <= observe.MaxStatement && bytes.HasPrefix(data, []byte("{")) { // and not [DONE]
			last = append(last[:0], data...)
		}
		if !event(e.Name, data) {
			return nil
		}
	}
	return nil
}

// FailAsStated fails a response that could not be read, with the error that the answer, or its
// last event, states in some shape. ReadAnswer calls it.
func (a *Assembler) FailAsStated(data []byte) {
	if a.failure == nil && a.reason == ReasonNone && !a.seen.Content && len(a.open) == 0 {
		if e := plugins.ErrorWithin(data); e != nil {
			a.Fail(e)
		}
	}
}

// ReadObject reads the body of an answer that is one object. announced is its Content-Length, or -1.
func ReadObject(body io.Reader, announced int64) ([]byte, error) {
	return ReadAll(io.LimitReader(body, maxObject), announced)
}

// byteOrderMark is what some frameworks write before JSON (https://www.rfc-editor.org/rfc/rfc8259#section-8.1).
var byteOrderMark = []byte("\xef\xbb\xbf")

// ReadAll is io.ReadAll of a body, without a byte order mark. announced is its Content-Length, or -1: at
// most 1 MiB is allocated for it at once. An error comes with the bytes read before.
func ReadAll(r io.Reader, announced int64) ([]byte, error) {
	capacity := min(max(announced, 0), maxPreallocated)
	b := bytes.NewBuffer(make([]byte, 0, capacity+bytes.MinRead)) // which ReadFrom needs to see the end
	_, err := b.ReadFrom(r)
	return bytes.TrimPrefix(b.Bytes(), byteOrderMark), err
}

// ParseJSON parses what the provider sent. The response fails if that is not JSON.
func (a *Assembler) ParseJSON(data []byte) (v gjson.Result, ok bool) {
	if !plugins.ValidJSON(data) {
		a.Fail(plugins.Upstream("The provider sent what is not JSON."))
		return v, false
	}
	return gjson.ParseBytes(data), true
}

// ParseEvent parses the data of an event. ok is false at [DONE], which ends a stream, and
// if the data is not JSON, which fails the response.
func (a *Assembler) ParseEvent(data []byte) (e gjson.Result, ok bool) {
	if string(data) == "[DONE]" {
		return e, false
	}
	return a.ParseJSON(data)
}

// ReadError reads an answer that is no success, for Provider.Error. newError makes the error
// of the status and the body, which is that of plugins.ErrorBody. The status is 0 if the answer has
// begun as a success. Retry-After wins over the wait of newError.
func ReadError(resp *http.Response, newError func(status int, body gjson.Result) *plugins.Error) *plugins.Error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what is missing is not JSON
	body := plugins.ErrorBody(data)
	status := resp.StatusCode
	if status < http.StatusMultipleChoices {
		status = 0
	}
	e := newError(status, body)
	switch wait := plugins.RetryAfter(resp.Header); {
	case wait > 0:
		e.RetryAfter = wait
	case e.RetryAfter == 0 && e.Status == http.StatusTooManyRequests:
		e.RetryAfter = plugins.UntilReset(resp.Header)
	}
	// Claude Code asks again for as long as nothing says that a quota is spent
	// (https://github.com/BerriAI/litellm/issues/37754).
	e.Final = resp.Header.Get("X-Should-Retry") == "false" || resp.Header.Get("Anthropic-Ratelimit-Unified-Status") == "rejected"
	return e
}

// Observe reports the usage in a body of dialect d, and returns all that the body says. The
// body is an object in one or more pieces. Options.Provider wins over provider.
func (a *Assembler) Observe(d plugins.Dialect, provider string, body ...[]byte) *plugins.ResponseInfo {
	info := observe.Read(d, cmp.Or(a.opts.Provider, provider), nil, body...)
	a.Report(info)
	return info
}

// Observer reads the usage in the events of a stream of dialect d. Options.Provider wins over
// provider.
func (a *Assembler) Observer(d plugins.Dialect, provider string) plugins.Observer {
	return observe.NewEvents(d, cmp.Or(a.opts.Provider, provider))
}
