//go:build linux

package durability

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/rawserver"
)

// malformed are answers that break HTTP, or use what few do, with content where it
// does not belong.
var malformed = map[string]string{
	"bytes after the end":  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}$",
	"second answer":        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 $\r\n\r\n",
	"status code":          "HTTP/1.1 $ OK\r\n\r\n",
	"status line":          "$\r\n\r\n",
	"version":              "HTTP/$ 200 OK\r\n\r\n",
	"reason":               "HTTP/1.1 200 $\r\nContent-Length: 2\r\n\r\n{}",
	"header":               "HTTP/1.1 200 OK\r\n$\r\n\r\n",
	"header's name":        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n$ x: y\r\n\r\n{}",
	"content length":       "HTTP/1.1 200 OK\r\nContent-Length: $\r\n\r\n",
	"transfer encoding":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: $\r\n\r\n",
	"content encoding":     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 22\r\n\r\n$",
	"chunk's length":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n$\r\n\r\n",
	"chunk's extension":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;$\r\n{}\r\n0\r\n\r\n",
	"chunk's end":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}$\r\n\r\n",
	"trailer":              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: $\r\n\r\n",
	"announced trailer":    "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: $\r\n\r\n",
	"broken trailer":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n$\r\n\r\n",
	"informational":        "HTTP/1.1 103 $\r\nLink: <$>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
	"broken informational": "HTTP/1.1 103 $\r\n$\r\n\r\n",
	"upgrade":              "HTTP/1.1 101 $\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n$",
	"error":                "HTTP/1.1 400 $\r\nContent-Type: application/json\r\nContent-Length: 46\r\n\r\n{\"error\":{\"message\":\"$\"}}",
	"broken event":         "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"$\r\n\r\nevent: $\r\n\r\n",
	"broken JSON":          "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 24\r\n\r\n{\"$",
}

// numbered answers each request as it asks to in its body, which names one of the
// answers by its number.
func numbered(t *testing.T, answers []string) (address string) {
	wanted := regexp.MustCompile(`answer-(\d+)-`)
	return rawserver.Serve(t, func(c net.Conn) {
		_ = c.SetDeadline(time.Now().Add(2 * time.Second))
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		if found := wanted.FindSubmatch(body); found != nil {
			n, _ := strconv.Atoi(string(found[1]))
			_, _ = io.WriteString(c, answers[n])
		}
		if !bytes.Contains(body, []byte("stay")) {
			_ = c.(*net.TCPConn).CloseWrite()
		}
		_, _ = io.Copy(io.Discard, c) // until Weir gives the connection up
	})
}

// However an upstream breaks HTTP, nothing of an omitted request or answer is in any
// log, at any level, nor anywhere else; and neither is what a client breaks that
// reports its calls.
func TestOmissionOfMalformedAnswers(t *testing.T) {
	t.Parallel()
	g := &canarySet{placed: map[canary]placement{}}
	add := func(what, call string, s presence) string {
		c := newCanary()
		g.placed[c] = placement{what, call, s}
		return string(c)
	}
	type request struct{ name, path, body string }
	var requests []request
	var answers []string
	for _, lane := range []request{
		{"proxy", "/proxy/v1/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":%q}]}`},
		{"stream", "/proxy/v1/chat/completions", `{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":%q}]}`},
		{"Go's transport", "/http/v1/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":%q}]}`},
		{"stream of Go's transport", "/http/v1/chat/completions", `{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":%q}]}`},
		{"bare", "/bare/v1/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":%q}]}`},
		{"errors pass", "/pass/v1/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":%q}]}`},
		{"responses", "/v1/responses", `{"model":"gpt-4o-mini","input":%q}`},
		{"translated", "/v1/responses", `{"model":"claude-haiku-4-5","input":%q}`},
		{"translated stream", "/v1/responses", `{"model":"claude-haiku-4-5","stream":true,"input":%q}`},
		{"chat", "/v1/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":%q}]}`},
	} {
		for name, answer := range malformed {
			call := lane.name + ", " + name
			prompt := fmt.Sprintf("answer-%d- %s", len(answers), add("prompt", call, forbidden))
			if strings.Contains(name, "end") || strings.Contains(name, "second") {
				prompt += " stay" // the connection is idle when it comes
			}
			answers = append(answers, strings.ReplaceAll(answer, "$", add("answer", call, forbidden)))
			requests = append(requests, request{call, lane.path, fmt.Sprintf(lane.body, prompt)})
		}
	}
	for name, body := range map[string]string{
		"broken JSON":   `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"$","attributes":[{"key":"gen_ai.prompt","value":{"stringValue":"$`,
		"wrong type":    `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"$","spanId":["$"]}]}]}]}`,
		"unknown field": `{"resourceSpans":[{"scopeSpans":[{"spans":[{"$":"$"}]}]}]}`,
	} {
		call := "OTLP, " + name
		requests = append(requests, request{call, "/v1/traces", strings.ReplaceAll(body, "$", add("span", call, forbidden))})
	}
	upstream := numbered(t, answers)
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(config{
		global: "debug\nlog {\nformat llm\n}",
		llm:    strings.ReplaceAll("provider openai {\nbase_url $/v1\napi_key x\n}\nprovider anthropic {\nbase_url $\napi_key x\n}", "$", "http://"+upstream),
		site: strings.NewReplacer("$log", filepath.Join(w.dir, "logs", "access.log"), "$upstream", upstream).Replace(`
			log {
				output file $log
				format llm json
			}
			handle_path /proxy/* {
				llm_proxy openai http://$upstream
			}
			handle_path /http/* {
				llm_proxy openai http://$upstream {
					transport http
				}
			}
			handle_path /pass/* {
				llm_log openai {
					errors pass
				}
				reverse_proxy $upstream
			}
			handle_path /bare/* {
				llm_log openai
				reverse_proxy $upstream {
					verbose_logs
				}
			}
			llm_otlp
			llm_gateway {
				retries 0
			}
			handle_errors {
				respond "{err.message}"
			}`),
	})
	for _, c := range requests {
		r, err := http.NewRequest("POST", "http://"+w.site+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Authorization": "Bearer " + key, "Service-Auth": "Bearer " + key,
			"Service-Omit-Request": "true", "Service-Omit-Response": "true",
		} {
			r.Header.Set(name, value)
		}
		if response, err := direct.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		} else if os.IsTimeout(err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// What is not omitted is found.
	kept := p.call(chat)
	kept.prompt = add("prompt", "kept", required)
	kept.must(t, w)
	w.await("Go's transport has told of bytes after the end", func() bool {
		log, err := os.ReadFile(w.log())
		return err == nil && bytes.Contains(log, []byte("Unsolicited response"))
	})
	w.flush()
	g.check(t, w, "the running process", true)
	w.kill()
	g.check(t, w, "after the kill", true)
	t.Logf("%d calls, %d canaries", len(requests), len(g.placed))
}
