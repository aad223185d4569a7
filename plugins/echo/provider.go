package echo

import (
	"bytes"
	"context"
	"errors"
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

// RoundTrip implements http.RoundTripper.
func (p *Provider) RoundTrip(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	a := answerWriter{header: make(http.Header), status: http.StatusOK}
	body, err := translate.ReadAll(r.Body, r.ContentLength)
	if err != nil {
		return nil, err
	}
	p.handler.Answer(&a, r, body)
	return &http.Response{
		StatusCode:    a.status,
		Header:        a.header,
		ContentLength: int64(a.body.Len()),
		Body:          io.NopCloser(&a.body),
		Request:       r,
	}, nil
}

// answerWriter keeps an answer.
type answerWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answerWriter) Header() http.Header         { return a.header }
func (a *answerWriter) WriteHeader(status int)      { a.status = status }
func (a *answerWriter) Write(p []byte) (int, error) { return a.body.Write(p) }

var (
	_ http.RoundTripper   = (*Provider)(nil)
	_ translate.Native    = (*Provider)(nil)
	_ translate.Endpoints = (*Provider)(nil)
	_ caddy.Module        = (*Provider)(nil)
)
