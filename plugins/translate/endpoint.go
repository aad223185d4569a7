package translate

import (
	"context"
	"net/http"

	"github.com/weirhq/weir/plugins"
)

// EndpointTranslator is a Provider whose targets have an endpoint in a format of their own.
type EndpointTranslator interface {
	// TranslateEndpoint returns the call for a request of dialect d: plugins.Embeddings or
	// plugins.Rerank. The error is errors.ErrUnsupported for a target that lacks the endpoint, or
	// takes the body as it is (Endpoints). An error that the client caused is a *plugins.Error.
	TranslateEndpoint(ctx context.Context, d plugins.Dialect, body *plugins.Object, t Target) (*EndpointCall, error)
}

// EndpointCall is a call of an endpoint in the provider's format.
type EndpointCall struct {
	// Count is how many requests the call takes, each after the answer to the one before. Most
	// providers take one; some embed one text a request.
	Count int
	// Request returns the ith request, right before it is sent: a signature holds for minutes.
	Request func(i int) (*http.Request, error)
	// Warnings say "<field>: <what was done>" about what the provider does not get.
	Warnings []string
	// Read returns the answer in the client's format, given the successful answers to the first
	// requests. It returns nil if they are no answer.
	Read func(answers []EndpointAnswer) []byte
}

// EndpointAnswer is a provider's answer to one request. Its body is JSON.
type EndpointAnswer struct {
	Header http.Header
	Body   []byte
}
