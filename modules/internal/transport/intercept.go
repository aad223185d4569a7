package transport

import (
	"context"
	"net/http"
)

// Interceptor may answer a request in place of the provider when it is about to leave: its address,
// header and method are those that the provider would see. via tells apart what transports add,
// such as a certificate of the client. The request goes on if there is no answer.
type Interceptor func(req *http.Request, via string) *http.Response

type interceptorKey struct{}

// WithInterceptor returns a context whose requests the transports of Weir show to an interceptor.
func WithInterceptor(ctx context.Context, i Interceptor) context.Context {
	return context.WithValue(ctx, interceptorKey{}, i)
}

// Intercept returns the answer of the interceptor of a request, nil if there is none.
func Intercept(req *http.Request, via string) *http.Response {
	if i, ok := req.Context().Value(interceptorKey{}).(Interceptor); ok {
		return i(req, via)
	}
	return nil
}
