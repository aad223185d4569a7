package llmgateway

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// However a provider breaks HTTP, no log quotes an answer that is omitted.
func TestMalformedAnswersReachNoLog(t *testing.T) {
	const canary = "c4n4ry"
	for name, answer := range map[string]string{
		"bytes after the end": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}" + canary,
		"status code":         "HTTP/1.1 " + canary + " OK\r\n\r\n",
		"status line":         canary + "\r\n\r\n",
		"header":              "HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n",
		"content length":      "HTTP/1.1 200 OK\r\nContent-Length: " + canary + "\r\n\r\n",
		"chunk's length":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n" + canary + "\r\n\r\n",
		"broken trailer":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + canary + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var standard, logs bytes.Buffer // read when nothing writes any more
			before := log.Writer()
			log.SetOutput(&standard)
			defer log.SetOutput(before)

			ended := make(chan struct{}, 10)
			s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(conn, answer)
				_, _ = io.Copy(io.Discard, conn) // until the gateway gives the connection up
				conn.Close()
				ended <- struct{}{}
			}}})
			s.handler.policy.Retries = 0
			s.handler.site.Logger = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&logs), zapcore.DebugLevel))
			s.post(`{"model":"raw/m","input":"hi"}`, "Service-Omit-Response", "true")
			<-ended
			s.Close()
			log.SetOutput(before) // waits for a line that is being written
			if said := standard.String() + logs.String(); strings.Contains(said, canary) {
				t.Errorf("the log has it: %s", said)
			}
		})
	}
}
