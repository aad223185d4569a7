package llmgateway

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/plugins"
)

// maxRequest bounds the body of a request, in bytes.
const maxRequest = 64 << 20

// memory is that of the caller's organisation.
func (q *request) memory() *admission.Memory { return q.h.site.App.Memory(q.key.Org()) }

// intake returns a reader of bodies of at most limit bytes.
func (q *request) intake(limit int64) intake.Reader {
	return intake.Reader{Memory: q.memory(), Limit: limit}
}

// checkSize refuses a document that takes more memory than its length lets expect: one that
// nests deeply, or has very many items or tools. The items are in the field itemsField.
func (q *request) checkSize(document []byte, itemsField string) error {
	if err := q.received.CheckJSON(q.ctx, document); err != nil {
		return err
	}
	if elements(document, itemsField, q.h.MaxItems) > q.h.MaxItems {
		return intake.Refuse(metric.Constant("items"), itemsField, "The input has more than %d items.", q.h.MaxItems)
	}
	if elements(document, "tools", q.h.MaxTools) > q.h.MaxTools {
		return intake.Refuse(metric.Constant("tools"), "tools", "The request has more than %d tools.", q.h.MaxTools)
	}
	return nil
}

// elements returns how many elements an array of the body has. It stops counting above most.
func elements(body []byte, field string, limit int) (n int) {
	array := gjson.Get(plugins.View(body), field)
	if !array.IsArray() {
		return 0
	}
	array.ForEach(func(_, _ gjson.Result) bool {
		n++
		return n <= limit
	})
	return n
}
