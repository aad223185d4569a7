package translate

import (
	"context"
	"net/http"

	"github.com/weirhq/weir/plugins"
)

// Provider translates between the neutral request and one provider's API. Its
// methods are called concurrently; they do no I/O but to read the body that
// Decode and Error are given.
type Provider interface {
	// Prepare returns the upstream request for p. An error that the client caused
	// is a *plugins.Error. It may change p, which is the attempt's own, and adds
	// warnings to it.
	Prepare(ctx context.Context, p *Request, t Target) (*http.Request, error)

	// Decode reads a successful answer, streaming or not as a.Request() asked for,
	// and passes what it reads to a. It returns at the end of the answer; if the
	// answer ends too early, it returns without Finish, and the response fails. It
	// returns only errors of reading the body. resp.Request is what Prepare made.
	Decode(resp *http.Response, a *Assembler) error

	// Error returns what an answer that is no success means to the client. It
	// reads at most 1 MiB of the body, and never returns nil.
	Error(resp *http.Response) *plugins.Error
}

// KeyHeader is a Provider that takes its key in another way than as a bearer token.
type KeyHeader interface {
	// KeyHeader returns the header field that has the key and nothing else, "" if the key
	// alone does not decide who pays.
	KeyHeader() string
}

// Native is a Provider whose targets may speak a dialect themselves, so that
// bodies pass as they are.
type Native interface {
	// PrepareNative returns the upstream request of dialect d, whose body is body
	// but for the model. The error is errors.ErrUnsupported for a target that does
	// not speak d.
	PrepareNative(ctx context.Context, d plugins.Dialect, body *plugins.Object, t Target) (*http.Request, error)
}

// Adapter is a Native whose targets are known to refuse a field that clients of a dialect
// commonly send.
type Adapter interface {
	// Adapt returns a body of dialect d as the target takes it, and a warning
	// "<field>: <what was done>" for each change.
	Adapt(d plugins.Dialect, body *plugins.Object, t Target) (adapted []byte, warnings []string)
}

// HeaderAdapter is a Native whose targets are known to refuse values of a header that clients of a
// dialect commonly send.
type HeaderAdapter interface {
	// AdaptHeader makes the client's fields of a header what the target takes, and returns a
	// warning "<field>: <what was done>" for each change.
	AdaptHeader(header http.Header, t Target) (warnings []string)
}

// MCPCaller is a Provider whose targets call MCP servers themselves.
type MCPCaller interface {
	// CallsMCP reports whether the target calls the MCP servers of p.
	CallsMCP(p *Request) bool
}

// Counter is a Provider whose targets count the tokens of a request without answering it.
type Counter interface {
	// PrepareCount returns the upstream request that counts the tokens of p's input. Its
	// errors, and what it may change of p, are those of Prepare.
	PrepareCount(ctx context.Context, p *Request, t Target) (*http.Request, error)
	// Tokens reads the count of a successful answer. ok is false where it has none.
	Tokens(body []byte) (n int64, ok bool)
}

// Endpoints is a Provider whose targets have endpoints that are not translated, such as
// those of images and audio: bodies pass as they are, but for the model.
type Endpoints interface {
	// PrepareEndpoint returns the upstream request to the endpoint that OpenAI, or
	// else Cohere or Anthropic, has at path, such as "/v1/images/edits". It has no body yet.
	// The error is errors.ErrUnsupported for a target without that endpoint.
	PrepareEndpoint(ctx context.Context, method, path string, t Target) (*http.Request, error)
}
