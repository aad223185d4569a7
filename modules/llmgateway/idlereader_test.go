package llmgateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/storage"
)

// transport is a provider that is reached without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// piece is what a provider says after a silence.
type piece struct {
	after time.Duration
	text  string
}

// play lets every provider answer the pieces of a stream.
func (s *site) play(pieces ...piece) {
	for _, account := range s.handler.site.App.Accounts().Of("default") {
		account.Transport = providers.NewTransport(transport(func(*http.Request) (*http.Response, error) {
			body, provider := io.Pipe()
			go func() {
				for _, p := range pieces {
					time.Sleep(p.after)
					_, _ = io.WriteString(provider, p.text) // the gateway is there
				}
				provider.Close()
			}()
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
		}))
	}
}

// call posts to the handler itself, as within a bubble of synctest.
func (s *site) call(t *testing.T, w http.ResponseWriter, path, body string) {
	t.Helper()
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer k")
	if err := s.handler.ServeHTTP(w, r, nil); err != nil {
		t.Fatal(err)
	}
}

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
			pieces := make([]piece, len(c.pieces), len(c.pieces)+1)
			for i, text := range c.pieces {
				pieces[i] = piece{c.pause, text}
			}
			pieces[0].after = 0
			s.play(append(pieces, piece{after: c.pause})...)
			synctest.Test(t, func(t *testing.T) {
				w := httptest.NewRecorder()
				s.call(t, w, "/v1/responses", `{"model":"`+c.label+`/m","input":"hi","stream":true}`)
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

// clocked is a client that notes when it was sent what, and how many records
// stood by then.
type clocked struct {
	*httptest.ResponseRecorder
	site    *site
	begun   time.Time
	heard   []time.Duration
	records []int
}

func (c *clocked) Write(b []byte) (int, error) {
	c.heard = append(c.heard, time.Since(c.begun))
	c.records = append(c.records, len(c.site.kept.all()))
	return c.ResponseRecorder.Write(b)
}

// Before its content, a stream is held for maxHold and no longer, however late it
// begins; and what ends it goes out after its record, also by a pause.
func TestHold(t *testing.T) {
	const (
		responses = `{"model":"raw/m","input":"hi","stream":true}`
		finish    = `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
		failed    = `data: {"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"x","message":"y"}}}` + "\n\n"
	)
	events := strings.SplitAfter(nativeEvents, "\n\n")
	for name, c := range map[string]struct {
		path, body string
		pieces     []piece
		heard      []time.Duration
		records    []int
	}{
		"begun at once": {"/v1/responses", responses, []piece{{0, events[0]}, {1 * time.Second, events[2]}, {1 * time.Second, events[3]}},
			[]time.Duration{1 * time.Second, 2 * time.Second}, []int{0, 1}},
		"begun late": {"/v1/responses", responses, []piece{{3 * time.Second, events[0]}, {10 * time.Second, events[2]}, {1 * time.Second, events[3]}},
			[]time.Duration{3 * time.Second, 13 * time.Second, 14 * time.Second}, []int{0, 0, 1}},
		"translated, begun late": {"/v1/responses", stream, []piece{{3 * time.Second, "data: text a\n\n"}, {10 * time.Second, "data: stop\n\n"}},
			[]time.Duration{2 * time.Second, 3 * time.Second, 13 * time.Second}, []int{0, 0, 1}},
		"finished without content": {"/v1/chat/completions", `{"model":"raw/m","messages":[],"stream":true}`, []piece{{0, finish}, {10 * time.Second, "data: [DONE]\n\n"}},
			[]time.Duration{2 * time.Second, 10 * time.Second}, []int{1, 1}},
		"failed without content": {"/v1/responses", responses, []piece{{0, failed}, {10 * time.Second, ": the end\n\n"}},
			[]time.Duration{2 * time.Second, 10 * time.Second}, []int{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, nil)
			s.play(c.pieces...)
			synctest.Test(t, func(t *testing.T) {
				w := &clocked{ResponseRecorder: httptest.NewRecorder(), site: s, begun: time.Now()}
				s.call(t, w, c.path, c.body)
				if !slices.Equal(w.heard, c.heard) || !slices.Equal(w.records, c.records) {
					t.Errorf("the client heard at %v, of %v records; want %v, of %v\n%s", w.heard, w.records, c.heard, c.records, w.Body)
				}
				if r := s.kept.all()[0]; r.ResponseBytes != int64(w.Body.Len()) {
					t.Errorf("the record counts %d bytes of %d", r.ResponseBytes, w.Body.Len())
				}
			})
		})
	}
}

// A writer that cannot flush has a client all the same.
func TestNoFlush(t *testing.T) {
	for _, model := range []string{"one/m", "raw/m"} {
		s := serve(t, map[string][]upstream{"one": {hello}, "raw": {speaksResponses}})
		recorder := httptest.NewRecorder()
		s.call(t, struct{ http.ResponseWriter }{recorder}, "/v1/responses", `{"model":"`+model+`","input":"hi","stream":true}`)
		if _, err := plugintest.Check(recorder.Body.Bytes()); err != nil {
			t.Errorf("%s: %v", model, err)
		}
		if r := s.kept.all()[0]; r.EndState != storage.Complete {
			t.Errorf("%s: the record says %s", model, r.EndState)
		}
	}
}

// An exchange that ends in a panic, at whatever point, is lost and known to be.
func TestPanicIsCounted(t *testing.T) {
	events := strings.SplitAfter(nativeEvents, "\n\n")
	for name, text := range map[string]string{"before content": events[0], "behind content": events[0] + events[2]} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, nil)
			for _, account := range s.handler.site.App.Accounts().Of("default") {
				account.Transport = providers.NewTransport(transport(func(*http.Request) (*http.Response, error) {
					body := io.NopCloser(io.MultiReader(strings.NewReader(text), iotest.DataErrReader(nil)))
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
				}))
			}
			defer func() {
				if recover() == nil {
					t.Error("there was no panic")
				}
				if s.kept.abandoned != 1 {
					t.Errorf("%d exchanges are lost", s.kept.abandoned)
				}
			}()
			s.call(t, httptest.NewRecorder(), "/v1/responses", `{"model":"raw/m","input":"hi","stream":true}`)
		})
	}
}
