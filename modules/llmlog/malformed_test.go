package llmlog

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/rawserver"
)

// raw is an upstream that answers requests with bytes, whatever they are, until it
// is told to stop. ended gets an element whenever a connection has ended.
func raw(t *testing.T, answer string) (host string, ended chan struct{}) {
	t.Helper()
	ended = make(chan struct{}, 10)
	host = rawserver.Serve(t, func(conn net.Conn) {
		defer func() { conn.Close(); ended <- struct{}{} }()
		if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			io.Copy(io.Discard, r.Body)
			io.WriteString(conn, answer)
		}
		conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		if !strings.Contains(answer, "\r\n\r\n") { // an answer without an end ends with the connection
			return
		}
		io.Copy(io.Discard, conn) // until the proxy gives the connection up
	})
	return host, ended
}

// However a provider breaks HTTP, no log quotes an answer that is omitted.
func TestMalformedAnswersReachNoLog(t *testing.T) {
	const canary = "c4n4ry"
	for name, c := range map[string]struct {
		answer string
		status int // 0 where the answer breaks off
	}{
		"bytes after the end": {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" + canary, 200},
		"status code":         {"HTTP/1.1 " + canary + " OK\r\n\r\n", 502},
		"status line":         {canary + "\r\n\r\n", 502},
		"version":             {"HTTP/" + canary + " 200 OK\r\n\r\n", 502},
		"reason":              {"HTTP/1.1 200 " + canary + "\r\nContent-Length: 2\r\n\r\n{}", 200},
		"header":              {"HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n", 502},
		"header's name":       {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + canary + " x: y\r\n\r\n{}", 200},
		"content length":      {"HTTP/1.1 200 OK\r\nContent-Length: " + canary + "\r\n\r\n", 502},
		"transfer encoding":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + canary + "\r\n\r\n", 502},
		"chunk's length":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n" + canary + "\r\n\r\n", 0},
		"chunk's end":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}" + canary + "\r\n\r\n", 0},
		"trailer":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: " + canary + "\r\n\r\n", 200},
		"announced trailer":   {"HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: " + canary + "\r\n\r\n", 200},
		"broken trailer":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + canary + "\r\n\r\n", 0},
		"upgrade":             {"HTTP/1.1 101 " + canary + "\r\nConnection: upgrade\r\n\r\n", 502},
		"informational":       {"HTTP/1.1 100 " + canary + "\r\n" + canary + "\r\n\r\n", 502},
	} {
		for variant, o := range map[string]options{
			"": {config: object{}}, " passed": {config: object{"errors": errorsPass}},
			" by http": {config: object{}, transport: object{"protocol": "http"}},
		} {
			t.Run(name+variant, func(t *testing.T) {
				standard := new(lockedBuffer)
				before := log.Writer()
				log.SetOutput(standard)
				defer log.SetOutput(before)

				host, ended := raw(t, c.answer)
				o.upstream, o.encoder, o.accessLogs = host, "llm", true
				s := serve(t, o)
				r, _ := http.NewRequest("POST", s.url(chatPath), strings.NewReader(`{"model":"m"}`))
				r.Header.Set("Service-Omit-Response", "true")
				resp, err := s.client().Do(r)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				switch {
				case c.status == 0 && err == nil:
					t.Errorf("%s, and an end", resp.Status)
				case c.status != 0 && (err != nil || resp.StatusCode != c.status):
					t.Errorf("%v, %v", resp, err)
				}
				s.record()
				if c.status != 200 || name == "bytes after the end" {
					<-ended // the transport has given the connection up
				}
				stop(t, s)
				for _, logs := range []string{s.logs.String(), standard.String()} {
					if i := strings.Index(logs, canary); i >= 0 {
						t.Errorf("the log has it: …%s…", logs[max(0, i-300):min(len(logs), i+100)])
					}
				}
				if name == "bytes after the end" && o.transport != nil && !strings.Contains(standard.String(), "Unsolicited") {
					t.Errorf("nothing is said of it: %q", standard)
				}
				if !strings.Contains(s.logs.String(), "upstream roundtrip") {
					t.Error("there is no debug log")
				}
			})
		}
	}
}
