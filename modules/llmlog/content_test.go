package llmlog

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

const (
	askCanary    = `{"model":"gpt-4o","messages":[{"role":"user","content":"canary-question"}]}`
	answerCanary = `{"id":"c1","object":"chat.completion","model":"gpt-4o-2024-08-06","choices":[{"index":0,"message":{"role":"assistant","content":"canary-answer"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`
)

// fixed answers every call with the same body.
func fixed(t *testing.T, encoding, body string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// What is omitted is nowhere; what is measured is there all the same.
func TestOmission(t *testing.T) {
	host := fixed(t, "", answerCanary)
	for _, c := range []struct {
		name              string
		config            object
		header            []string
		request, response bool // omitted
	}{
		{"nothing", object{}, nil, false, false},
		{"request", object{}, []string{"Service-Omit-Request", "true"}, true, false},
		{"response", object{}, []string{"Service-Omit-Response", "true"}, false, true},
		{"both", object{}, []string{"Service-Omit-Request", "true", "Service-Omit-Response", "TRUE"}, true, true},
		{"both, by the site", object{"omit": []string{"request", "response"}}, []string{"Service-Omit-Request", "false"}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, options{upstream: host, config: c.config, accessLogs: true})
			s.do("POST", chatPath, askCanary, append(c.header, "Service-Prompt-Input-City", "canary-input")...)
			e := s.record()
			if e.RequestOmitted != c.request || e.ResponseOmitted != c.response {
				t.Errorf("omitted %v, %v", e.RequestOmitted, e.ResponseOmitted)
			}
			kept := fmt.Sprintf("%s %+v", e.Request.Data, e.Inputs)
			if strings.Contains(kept, "canary-question") == c.request || strings.Contains(kept, "canary-input") == c.request {
				t.Errorf("request: %s", kept)
			}
			if strings.Contains(string(e.Response.Data), "canary-answer") == c.response {
				t.Errorf("response: %s", e.Response.Data)
			}
			if c.request && (e.Request.Type != "" || e.Request.Data != nil || e.Inputs != nil || e.Media) {
				t.Errorf("an omitted request has %+v", e.Content)
			}
			// Caddy's own lines have the request's headers, and the prompt input.
			logs := strings.ReplaceAll(s.logs.String(), "canary-input", "")
			if strings.Contains(fmt.Sprintf("%+v", e.Record), "canary") || strings.Contains(logs, "canary") {
				t.Error("content outside of the content")
			}
			if e.RequestModel != "gpt-4o" || e.Usage.Total() != plugins.Known(18) || e.RequestBytes != int64(len(askCanary)) || e.ResponseBytes != int64(len(answerCanary)) {
				t.Errorf("metrics %+v", e.Record)
			}
		})
	}
}

func encoded(t *testing.T, encoding, plain string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	default:
		return plain
	}
	io.WriteString(w, plain)
	w.Close()
	return b.String()
}

func TestContentEncodings(t *testing.T) {
	for _, encoding := range []string{"gzip", "deflate", "br", "zstd"} {
		t.Run(encoding, func(t *testing.T) {
			ask, answer := encoded(t, encoding, askCanary), encoded(t, encoding, answerCanary)
			s := serve(t, options{upstream: fixed(t, encoding, answer), config: object{}})
			_, got := s.do("POST", chatPath, ask, "Content-Encoding", encoding)
			if got != answer {
				t.Error("the client got other bytes")
			}
			e := s.record()
			if string(e.Request.Data) != askCanary || string(e.Response.Data) != answerCanary {
				t.Errorf("kept %q, %q", e.Request.Data, e.Response.Data)
			}
			if e.RequestModel != "gpt-4o" || e.Usage.Total() != plugins.Known(18) || e.ResponseBytes != int64(len(answer)) {
				t.Errorf("%+v", e.Record)
			}
		})
	}
	t.Run("unknown", func(t *testing.T) {
		s := serve(t, options{upstream: fixed(t, "x-own", answerCanary), config: object{}})
		s.do("POST", chatPath, askCanary)
		if e := s.record(); string(e.Response.Data) != answerCanary || e.Usage.Total().Valid {
			t.Errorf("kept %q, usage %+v", e.Response.Data, e.Usage)
		}
	})
}

// What is kept is bounded; what is extracted is not.
func TestMaxBody(t *testing.T) {
	s := serve(t, options{upstream: fixed(t, "", answerCanary), config: object{"max_body": 20}})
	_, got := s.do("POST", chatPath, askCanary)
	e := s.record()
	if got != answerCanary || string(e.Request.Data) != askCanary[:20] || string(e.Response.Data) != answerCanary[:20] {
		t.Errorf("kept %q, %q", e.Request.Data, e.Response.Data)
	}
	if !e.RequestTruncated || !e.ResponseTruncated || e.Usage.Total() != plugins.Known(18) || e.RequestModel != "gpt-4o" {
		t.Errorf("%+v", e.Record)
	}
}

func TestAccessLogAndPlaceholders(t *testing.T) {
	host := fixed(t, "", answerCanary)
	placeholders := []string{"model", "prompt_tokens", "total_tokens", "end_state", "user_id", "time_to_first_token", "cost"}
	var appends []object
	for _, p := range placeholders {
		appends = append(appends, object{"handler": "log_append", "key": "my_" + p, "value": "{http.llm." + p + "}"})
	}
	s := serve(t, options{upstream: host, accessLogs: true, config: object{"provider": "openai"}, before: appends})
	s.do("POST", chatPath, askCanary, "Service-User-Id", "u")
	e := s.record()
	stop(t, s)
	var line gjson.Result
	for _, l := range strings.Split(s.logs.String(), "\n") {
		if strings.HasPrefix(gjson.Get(l, "logger").String(), "http.log.access") {
			line = gjson.Parse(l)
		}
	}
	logged := line.Get("llm")
	if logged.Get("id").String() != e.ID.String() || logged.Get("model").String() != "gpt-4o-2024-08-06" || logged.Get("prompt_tokens").Int() != 11 || logged.Get("cost").Float() <= 0 {
		t.Errorf("llm is %s", logged.Raw)
	}
	for i, want := range []string{"gpt-4o-2024-08-06", "11", "18", "complete", "u", "", "0.0000975"} {
		if got := line.Get("my_" + placeholders[i]); got.String() != want {
			t.Errorf("%s is %s, want %s", placeholders[i], got, want)
		}
	}
}

// A count of tokens is free, with or without the gateway.
func TestCountOfTokensCostsNothing(t *testing.T) {
	s := serve(t, options{upstream: fixed(t, "", `{"input_tokens":14}`), config: object{"provider": "anthropic"}})
	s.do("POST", "/v1/messages/count_tokens", `{"model":"claude-haiku-4-5","messages":[]}`)
	if e := s.record(); e.Cost != plugins.KnownCost(0) || e.Usage.Total().Valid || e.Provider != "anthropic" || e.Model != "claude-haiku-4-5" {
		t.Errorf("%+v", e.Record)
	}
}

// A call for which a geography was chosen costs more, where the model does.
func TestCostOfAGeography(t *testing.T) {
	for geography, cost := range map[string]plugins.Nanodollars{"us": 5_500_000, "global": 5_000_000} {
		s := serve(t, options{config: object{"provider": "anthropic"}, upstream: fixed(t, "",
			`{"type":"message","model":"claude-opus-4-6","usage":{"input_tokens":1000,"output_tokens":0,"inference_geo":"`+geography+`"}}`)})
		s.do("POST", "/v1/messages", `{"model":"claude-opus-4-6","messages":[]}`)
		if e := s.record(); e.Cost != plugins.KnownCost(cost) || e.InferenceGeo != geography {
			t.Errorf("%s: cost %v, geography %q", geography, e.Cost, e.InferenceGeo)
		}
		stop(t, s)
	}
}

// An error answer without usage cost nothing; another one nobody knows what.
func TestCostWithoutUsage(t *testing.T) {
	for status, known := range map[int]bool{200: false, 429: true, 500: true} {
		s := serve(t, options{config: object{}, handler: handlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(status)
			return nil
		})})
		s.do("POST", chatPath, askCanary)
		if e := s.record(); e.Cost.Valid != known || e.Cost.N != 0 {
			t.Errorf("%d: cost %v", status, e.Cost)
		}
		stop(t, s)
	}
}
