package plugintest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirhq/weir/plugins/echo"
)

func TestCheckTakesEcho(t *testing.T) {
	const tool = `"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}]`
	for name, fields := range map[string]string{
		"text":      ``,
		"reasoning": `,"reasoning":{"effort":"low"},"include":["reasoning.encrypted_content"]`,
		"call":      `,"tool_choice":"required",` + tool,
		"cut off":   `,"max_output_tokens":2`,
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"model":"m","stream":true,"input":"tell me a \"story\""` + fields + `}`
			w := httptest.NewRecorder()
			new(echo.Handler).Answer(w, httptest.NewRequest(http.MethodPost, "/v1/responses", nil), []byte(body))
			if _, err := Check(w.Body.Bytes()); err != nil {
				t.Errorf("%v in\n%s", err, w.Body)
			}
		})
	}
}
