package gemini

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// It makes no difference to the answer which pieces of a stream look alike.
func TestRepeatedPieces(t *testing.T) {
	pieces := []string{
		`{"text":"a"}`, `{"text":" \"quoted\" \\ \u00e4"}`, `{"text":"🙂\n"}`, `{"text":""}`, `{"text":"b"}`,
		`{"text":"thinks","thought":true}`, `{"text":"more","thought":true}`, `{"text":"c"}`, `{"text":"d"}`,
		`{"text":"e","thoughtSignature":"s2ln"}`, `{"text":"f"}`, `{"text":"g"},{"text":"h"}`, `{"text":"i"}`, `{"text":5}`, `{"text":6}`,
		`{"functionCall":{"name":"f","args":{"x":1}}}`, `{"text":"j"}`, `{"text":"k"}`,
	}
	answer := func(differ bool) string {
		var b strings.Builder
		for i, piece := range pieces {
			usage := fmt.Sprintf(`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":%d,"totalTokenCount":%d}`, i, 9+i)
			if i >= 8 {
				usage = `"usageMetadata":{"trafficType":"ON_DEMAND"}`
			}
			if i == 11 {
				usage = `"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":100,"totalTokenCount":109}`
			}
			space := ""
			if differ {
				space = strings.Repeat(" ", i)
			}
			fmt.Fprintf(&b, "data: {%s\"candidates\":[{\"content\":{\"parts\":[%s]}}],%s,\"modelVersion\":\"m\",\"responseId\":\"r\"}\n\n", space, piece, usage)
		}
		b.WriteString("data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n")
		ids := 0
		a := translate.NewAssembler(&translate.Request{Model: "m", Stream: true}, io.Discard, translate.Options{
			ID:  func(prefix string) string { ids++; return fmt.Sprint(prefix, ids) },
			Now: func() time.Time { return time.Unix(0, 0) },
		})
		if err := (Provider{}).Decode(plugintest.Response(http.StatusOK, b.String()), a); err != nil {
			t.Fatal(err)
		}
		a.End()
		return string(a.Response())
	}
	alike, different := answer(false), answer(true)
	if alike != different || !json.Valid([]byte(alike)) || !strings.Contains(alike, `"total_tokens":109`) {
		t.Errorf("the answer is\n%s\nand was\n%s", alike, different)
	}
}
