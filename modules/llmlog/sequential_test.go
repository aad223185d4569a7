//go:build !race

package llmlog

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/modules/internal/admission"
)

// Answers with addresses take no more memory than there is: the client is told that there is
// none, and what was held is free afterwards.
func TestAnswersWithAddressesAreBounded(t *testing.T) {
	memory := admission.NewMemory(4 * admission.Small)
	longest := int(memory.Largest() / 2)
	for _, c := range []struct {
		bytes, status int
	}{{1000, http.StatusOK}, {1 << 20, http.StatusOK}, {longest, http.StatusOK}, {longest + 1, http.StatusBadGateway}} {
		for range 10 { // far more than there is, together
			w := httptest.NewRecorder()
			a := &addressWriter{ResponseWriter: w, memory: memory.Answer(t.Context(), -1, maxAddressed)}
			a.WriteHeader(http.StatusOK)
			answer := `{"data":["` + strings.Repeat("x", c.bytes-len(`{"data":[""]}`)) + `"]}`
			for sent := 0; sent < len(answer); sent += 32 << 10 {
				if _, err := a.Write([]byte(answer[sent:min(sent+32<<10, len(answer))])); err != nil {
					t.Fatal(err)
				}
			}
			if len(a.body) > longest {
				t.Errorf("%d bytes are held", len(a.body))
			}
			if a.Close(true); w.Code != c.status || c.status == http.StatusOK && w.Body.String() != answer {
				t.Errorf("%d bytes: %d %.100s", c.bytes, w.Code, w.Body)
			}
		}
	}
}
