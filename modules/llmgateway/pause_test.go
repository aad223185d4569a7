package llmgateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/plugins/plugintest"
)

// transport is a provider that is reached without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A provider that is silent, between two events or within one, keeps its client:
// it gets a comment each pingInterval, between whole events alone. Who speaks in
// time, or has not begun, is left as it is.
func TestSilence(t *testing.T) {
	const ping = ": ping\n\n"
	native, translated := []string{}, []string{"data: text hel\n\n", "data: te", "xt lo\n\n", "data: stop\n\n"}
	for _, event := range strings.SplitAfter(nativeEvents, "\n\n")[2:] {
		native = append(native, event[:len(event)/2], event[len(event)/2:])
	}
	for name, c := range map[string]struct {
		label  string
		pieces []string
		pause  time.Duration
		pings  bool
	}{
		"native":              {"raw", native, 2*pingInterval + time.Second, true},
		"native, whole":       {"raw", strings.SplitAfter(nativeEvents, "\n\n"), maxHold + time.Second, false},
		"native, in time":     {"raw", native, pingInterval * 2 / 5, false},
		"translated":          {"one", translated, 2*pingInterval + time.Second, true},
		"translated, in time": {"one", translated, pingInterval * 2 / 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, nil)
			for _, account := range s.handler.app.Accounts("default") {
				account.Transport = transport(func(*http.Request) (*http.Response, error) {
					body, provider := io.Pipe()
					go func() {
						for _, piece := range c.pieces {
							_, _ = io.WriteString(provider, piece) // the gateway is there
							time.Sleep(c.pause)
						}
						provider.Close()
					}()
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
				})
			}
			synctest.Test(t, func(t *testing.T) {
				r := httptest.NewRequest("POST", "/v1/responses", strings.NewReader(`{"model":"`+c.label+`/m","input":"hi","stream":true}`))
				r.Header.Set("Authorization", "Bearer k")
				w := httptest.NewRecorder()
				if err := s.handler.ServeHTTP(w, r, nil); err != nil {
					t.Fatal(err)
				}
				answer := w.Body.String()
				bare := strings.ReplaceAll(answer, ping, "")
				if c.label == "raw" && bare != strings.Join(c.pieces, "") {
					t.Errorf("without its pings the answer is\n%s", bare)
				}
				if _, err := plugintest.Check([]byte(bare)); c.label == "one" && err != nil {
					t.Errorf("%v\n%s", err, bare)
				}
				if pinged := answer != bare; pinged != c.pings {
					t.Errorf("pinged: %v\n%s", pinged, answer)
				}
				for before := range strings.SplitSeq(answer, ping) {
					if before != "" && !strings.HasSuffix(before, "\n\n") {
						t.Errorf("a ping stands behind %q", before)
					}
				}
				if kept := s.kept.all()[0].response; strings.Contains(kept, ping) {
					t.Errorf("the record has %s", kept)
				}
			})
		})
	}
}
