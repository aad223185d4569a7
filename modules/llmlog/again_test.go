package llmlog

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/testkit/rawserver"
)

// A provider that closes a used connection in place of an answer gets the request once more, with
// its whole body, and there is one record of the call.
func TestRequestOfALostConnectionIsSentAgain(t *testing.T) {
	body := `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"` + strings.Repeat("hello ", 10_000) + `"}]}`
	for name, c := range map[string]struct {
		config object
		header []string
		status int
		bodies int
	}{
		"content is kept":    {object{"provider": "openai"}, nil, 200, 2},
		"content is omitted": {object{"provider": "openai", "omit": []string{"request"}}, nil, 200, 2},
		"encoding unknown":   {object{"provider": "openai"}, []string{"Content-Encoding", "gzip"}, 200, 2},
		"beyond max_body":    {object{"provider": "openai", "max_body": 100}, nil, 502, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var bodies []string
			upstream := rawserver.Serve(t, func(conn net.Conn) {
				in := bufio.NewReader(conn)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					got, _ := io.ReadAll(r.Body)
					if r.Method == http.MethodPost {
						mu.Lock()
						bodies = append(bodies, string(got))
						first := len(bodies) == 1
						mu.Unlock()
						if first {
							return
						}
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
				}
			})
			s := serve(t, options{upstream: upstream, config: c.config})
			s.do("GET", "/v1/models", "") // makes the connection
			resp, _ := s.do("POST", "/v1/chat/completions", body, c.header...)
			if resp.StatusCode != c.status {
				t.Errorf("status %d, want %d", resp.StatusCode, c.status)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(bodies) != c.bodies || bodies[len(bodies)-1] != body {
				t.Errorf("%d bodies have come, want %d", len(bodies), c.bodies)
			}
			stop(t, s) // waits for the ends
			if s.kept.begun != 2 || s.kept.counted != 2 {
				t.Errorf("%d exchanges of two calls, %d with a record", s.kept.begun, s.kept.counted)
			}
		})
	}
}
