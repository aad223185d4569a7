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
	// Prepare is the upstream request for p. An error that the client caused is
	// an *Error. It may change p, which is the attempt's own, and adds warnings
	// to it.
	Prepare(ctx context.Context, p *Request, t Target) (*http.Request, error)

	// Decode reads a successful answer, streaming or not as a.Prompt() asked
	// for, and tells a. It ends at the provider's end; where that comes early
	// it returns without Finish, and a fails the response. An error is one of
	// reading the body. resp.Request is what Prepare made.
	Decode(resp *http.Response, a *Assembler) error

	// Error is what an answer that is no success means to the client. It reads
	// at most 1 MiB of the body, and never returns nil.
	Error(resp *http.Response) *plugins.Error
}

// Native is a Provider whose targets may speak a dialect themselves, so that
// bodies pass as they are.
type Native interface {
	// PrepareNative is the upstream request of dialect d with body as its body
	// but for the model. It is errors.ErrUnsupported for a target that does not
	// speak d.
	PrepareNative(ctx context.Context, d plugins.Dialect, body []byte, t Target) (*http.Request, error)
}

// Target is where an attempt goes.
type Target struct {
	// Model is the name that the provider has for the model.
	Model string
	// BaseURL is what the vendor's own SDK takes, without a slash at its end.
	BaseURL string
	// Key is the API key, "" for a provider that needs none.
	Key string
	// Capabilities are those of Model; nil where they are unknown.
	Capabilities *Capabilities
}

// Capabilities are what is known of a model, as the catalogue tells it.
type Capabilities struct {
	// Input and Output are kinds of content: text, image, audio, video, pdf;
	// empty where nobody says.
	Input, Output []string
	// MaxOutput is the number of tokens the output may have, 0 if unknown.
	MaxOutput int64
	// Reasoning models think before they answer.
	Reasoning bool
	// Efforts are the levels of reasoning effort that can be asked for.
	Efforts []string
	// MinBudget and MaxBudget bound the reasoning tokens that can be asked for,
	// 0 for no bound.
	MinBudget, MaxBudget int64
	// Interleaved is the field of a Chat Completions message that carries the
	// reasoning of earlier turns back to the model.
	Interleaved string
	// ToolCall models call functions.
	ToolCall bool
	// StructuredOutput models answer by a JSON schema.
	StructuredOutput bool
	// Temperature models take a sampling temperature.
	Temperature bool
}
