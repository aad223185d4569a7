package intake

import (
	"bytes"
	"context"
	"net/http"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/plugins"
)

const (
	// maxValues bounds the number of JSON values in a body, and maxDepth their nesting.
	maxValues = 250_000
	maxDepth  = 256
	// valueBytes is the memory that a parsed value takes in the worst case, in bytes, beyond its
	// text.
	valueBytes = 256
)

// CheckJSON refuses JSON with too many values or too deep nesting. Then it waits for the memory
// that parsing it takes. document is the body, or a later form of it.
func (b *Body) CheckJSON(ctx context.Context, document []byte) error {
	values, depth := shape(document)
	return b.check(ctx, int64(len(document)), values, depth)
}

// Weigh is CheckJSON without the limits: it only waits for the memory.
func (b *Body) Weigh(ctx context.Context, document []byte) error {
	values, _ := shape(document)
	return b.weigh(ctx, int64(len(document)), values)
}

// weigh waits for the memory of JSON with a size in bytes and a number of values.
func (b *Body) weigh(ctx context.Context, size int64, values int) error {
	return b.hold(ctx, copies*max(size, int64(len(b.Bytes)))+valueBytes*int64(values))
}

// check is weigh, but refuses too many values and too deep nesting.
func (b *Body) check(ctx context.Context, size int64, values, depth int) error {
	switch {
	case values > maxValues:
		return Refuse(metric.Constant("values"), "", "The request has more than %d values.", maxValues)
	case depth > maxDepth:
		return Refuse(metric.Constant("depth"), "", "The request is nested deeper than %d levels.", maxDepth)
	}
	return b.weigh(ctx, size, values)
}

// Refuse counts a request that is over the named limit, and returns the error for the client.
func Refuse(limit metric.Label, param, format string, args ...any) error {
	admission.Refusals.With(limit).Inc()
	e := plugins.Rejected(http.StatusRequestEntityTooLarge, "request_too_large", format, args...)
	e.Param = param
	return e
}

// shape returns the number of values of valid JSON, and the depth of their nesting. It
// allocates nothing.
func shape(body []byte) (values, depth int) {
	level := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			for {
				end := bytes.IndexByte(body[i+1:], '"')
				if end < 0 {
					return values, depth
				}
				i += 1 + end
				slashes := 0
				for body[i-1-slashes] == '\\' {
					slashes++
				}
				if slashes%2 == 0 {
					break
				}
			}
		case '{', '[':
			values++
			level++
			depth = max(depth, level)
		case '}', ']':
			level--
		case ',':
			values++
		}
	}
	return values, depth
}
