//go:build !race

package openai

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins/translate"
)

// An answer of many calls costs for each of them as much as one of few.
func TestCostOfCallsIsLinear(t *testing.T) {
	cost := func(calls int) time.Duration {
		var stream bytes.Buffer
		for i := range calls {
			for _, event := range []string{"response.output_item.added", "response.output_item.done"} {
				fmt.Fprintf(&stream, "data: {\"type\":%q,\"output_index\":%d,\"item\":{\"type\":\"function_call\",\"call_id\":\"c%d\",\"name\":\"f\",\"arguments\":\"{}\"}}\n\n", event, i, i)
			}
		}
		least := time.Hour
		for range 3 {
			a := translate.NewAssembler(&translate.Request{Raw: []byte("{}")}, io.Discard, translate.Options{})
			start := time.Now()
			if err := (Provider{}).Decode(&http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(stream.Bytes()))}, a); err != nil {
				t.Fatal(err)
			}
			least = min(least, time.Since(start))
		}
		return least
	}
	if few, many := cost(1000), cost(8000); many > 25*few {
		t.Errorf("1,000 calls took %v, and 8,000 calls %v", few, many)
	}
}
