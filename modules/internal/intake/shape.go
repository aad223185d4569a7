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
	// maxValues bounds how many values a body that is parsed has, and maxDepth how deep
	// they are nested.
	maxValues = 250_000
	maxDepth  = 256
	// valueBytes is what a value takes at worst when it is parsed, beside its bytes.
	valueBytes = 256
)

// CheckJSON refuses JSON with too many values, and waits for the memory that they take
// when they are parsed. document is the body, or what it has become.
func (b *Body) CheckJSON(ctx context.Context, document []byte) error {
	values, depth := shape(document)
	return b.check(ctx, int64(len(document)), values, depth)
}

// Weigh is CheckJSON for JSON of any number of values and depth.
func (b *Body) Weigh(ctx context.Context, document []byte) error {
	values, _ := shape(document)
	return b.weigh(ctx, int64(len(document)), values)
}

// weigh waits for the memory of so many bytes that are parsed to so many values.
func (b *Body) weigh(ctx context.Context, size int64, values int) error {
	return b.hold(ctx, copies*max(size, int64(len(b.Bytes)))+valueBytes*int64(values))
}

// check is weigh, and refuses too many values and values that are nested too deep.
func (b *Body) check(ctx context.Context, size int64, values, depth int) error {
	switch {
	case values > maxValues:
		return Refuse(metric.Constant("values"), "", "The request has more than %d values.", maxValues)
	case depth > maxDepth:
		return Refuse(metric.Constant("depth"), "", "The request is nested deeper than %d levels.", maxDepth)
	}
	return b.weigh(ctx, size, values)
}

// Refuse counts a request that met the limit of that name, and returns its error.
func Refuse(limit metric.Label, param, format string, args ...any) error {
	admission.Refusals.With(limit).Inc()
	e := plugins.Rejected(http.StatusRequestEntityTooLarge, "request_too_large", format, args...)
	e.Param = param
	return e
}

// shape counts the values of valid JSON and how deep they are nested. It allocates
// nothing.
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
