package echo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/module"
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/translate"
)

func init() {
	caddy.RegisterModule(new(Provider))
}

// Provider answers by itself, with no network and no key, what a Handler answers
// at the path of each dialect. It is its own transport.
type Provider struct {
	openai.Provider
	handler Handler
}

// CaddyModule returns the Caddy module information.
func (*Provider) CaddyModule() caddy.ModuleInfo { return module.Info[Provider]("echo") }

// PrepareNative implements translate.Native.
func (p *Provider) PrepareNative(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*http.Request, error) {
	if d == plugins.Messages {
		return anthropic.Provider{}.PrepareNative(ctx, d, body, t)
	}
	return p.Provider.PrepareNative(ctx, d, body, t)
}

// PrepareEndpoint implements translate.Endpoints: of these, it has embeddings.
func (p *Provider) PrepareEndpoint(ctx context.Context, method, path string, t translate.Target) (*http.Request, error) {
	if path != "/v1/embeddings" {
		return nil, errors.ErrUnsupported
	}
	return p.Provider.PrepareEndpoint(ctx, method, path, t)
}

// RoundTrip implements http.RoundTripper. A stream is made as fast as it is read, because its
// events are many times as long as the request.
func (p *Provider) RoundTrip(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	body, err := translate.ReadAll(r.Body, r.ContentLength)
	if err != nil {
		return nil, err
	}
	a := answerWriter{header: make(http.Header), status: http.StatusOK, ready: make(chan struct{})}
	stream, events := io.Pipe()
	a.events = events
	go func() {
		defer a.end()
		p.handler.Answer(&a, r, body)
	}()
	<-a.ready
	resp := &http.Response{StatusCode: a.status, Header: a.header, Request: r, ContentLength: -1, Body: stream}
	if !a.streams {
		resp.ContentLength, resp.Body = int64(a.body.Len()), io.NopCloser(&a.body)
	}
	return resp, nil
}

// answerWriter keeps an answer, until that is flushed and so a stream.
type answerWriter struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	events  *io.PipeWriter
	streams bool
	ready   chan struct{} // closed once it is known whether the answer is a stream
}

func (a *answerWriter) Header() http.Header    { return a.header }
func (a *answerWriter) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answerWriter) Write(p []byte) (int, error) {
	if a.streams {
		return a.events.Write(p)
	}
	return a.body.Write(p)
}

// Flush implements http.Flusher.
func (a *answerWriter) Flush() {
	if !a.streams {
		a.streams = true
		close(a.ready)
		_, _ = a.events.Write(a.body.Bytes()) // the next Write returns the same error
	}
}

// end ends the answer. A panic breaks a stream off.
func (a *answerWriter) end() {
	var err error
	if v := recover(); v != nil {
		a.status, err = http.StatusInternalServerError, fmt.Errorf("the echo panicked: %v", v)
	}
	if !a.streams {
		close(a.ready)
	}
	_ = a.events.CloseWithError(err)
}

var (
	_ http.RoundTripper   = (*Provider)(nil)
	_ translate.Native    = (*Provider)(nil)
	_ translate.Endpoints = (*Provider)(nil)
	_ caddy.Module        = (*Provider)(nil)
)
