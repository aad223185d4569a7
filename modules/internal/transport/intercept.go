package transport

import (
	"context"
	"net/http"
)

// Interceptor may answer a request in place of the provider. It gets the request when it is about to
// leave, with the address, the header and the method that the provider would see. via identifies what
// the transport adds, such as a certificate of the client. If it returns nil, the request goes on.
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
