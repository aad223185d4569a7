package llmlog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"
	"github.com/tidwall/gjson"
)

// sink is an upstream that shows what it was sent.
func sink(t *testing.T) (host string, got chan *http.Request) {
	got = make(chan *http.Request, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		got <- r
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"object":"chat.completion"}`)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), got
}

func TestControlHeadersStayHere(t *testing.T) {
	host, got := sink(t)
	s := serve(t, options{upstream: host, config: object{"country_header": "CF-IPCountry"},
		app: object{"header_prefixes": []string{"Helicone"}}})
	id := uuid.New()
	resp, _ := s.do("POST", chatPath+"?key=sk-canary&limit=1", `{"model":"m"}`,
		"Service-Request-Id", id.String(), "Helicone-User-Id", "u", "Service-Session-Id", "s", "Service-Unknown", "x",
		"CF-IPCountry", "CH", "Referer", "https://me:pw@example.com/x?token=canary", "Authorization", "Bearer sk-canary",
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	sent := <-got
	for name := range sent.Header {
		if strings.HasPrefix(name, "Service-") || strings.HasPrefix(name, "Helicone-") {
			t.Errorf("the provider gets %s", name)
		}
	}
	if sent.Header.Get("Authorization") != "Bearer sk-canary" || sent.Header.Get("Traceparent") == "" {
		t.Errorf("the provider gets %v", sent.Header)
	}
	const warning = "Service-Unknown: ignored, there is no such control header"
	if resp.Header.Get("Service-Id") != id.String() || !slices.Equal(resp.Header.Values("Service-Warnings"), []string{warning}) {
		t.Errorf("%v", resp.Header)
	}
	e := s.record()
	want := map[string]string{"Service-Session-Id": "s"}
	if e.ID != id || e.Org != "default" || e.UserID != "u" || e.SessionID != "s" || !maps.Equal(e.Properties, want) {
		t.Errorf("%+v", e.Record)
	}
	if e.CountryCode != "CH" || e.Referrer != "https://example.com/x?token=" ||
		e.TraceID != "0af7651916cd43dd8448eb211c80319c" || e.SpanID != "b7ad6b7169203331" {
		t.Errorf("%+v", e.Record)
	}
	if e.Path != chatPath || e.TargetURL != "http://"+host+chatPath+"?key=&limit=1" || e.Provider != "custom" {
		t.Errorf("path %s, target %s, provider %s", e.Path, e.TargetURL, e.Provider)
	}
	if strings.Contains(fmt.Sprintf("%+v", e), "canary") {
		t.Error("a credential is in the record")
	}
}

// TestControlTrailersStayHere holds that control headers which come after the
// body go nowhere, announced or not, and other trailers do.
func TestControlTrailersStayHere(t *testing.T) {
	host, got := sink(t)
	for name, config := range map[string]object{"passed": {}, "read ahead": {"stream_usage": true}, "not kept": {"omit": []string{"request"}}} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, options{upstream: host, config: config})
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: service-auth, X-Sum\r\n\r\n"+
				"2\r\n{}\r\n0\r\nService-Auth: Bearer canary\r\nService-User-Id: late\r\nX-Sum: 1\r\n\r\n", chatPath)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			sent := <-got
			if want := (http.Header{"X-Sum": {"1"}}); !reflect.DeepEqual(sent.Trailer, want) {
				t.Errorf("the provider gets the trailers %v", sent.Trailer)
			}
			if e := s.record(); e.UserID != "" || e.Org != "default" {
				t.Errorf("a trailer counts: %+v", e.Record)
			}
			stop(t, s)
		})
	}
}

func TestRequestID(t *testing.T) {
	host, _ := sink(t)
	s := serve(t, options{upstream: host, config: object{}})
	id := uuid.NewString()
	for _, c := range []struct{ sent, warning string }{
		{id, ""},
		{id, "Service-Request-Id: replaced, it was used before"},
		{"mine", "Service-Request-Id: replaced, it is no UUID"},
		{"{" + id + "}", "Service-Request-Id: replaced, it is no UUID"},
		{uuid.Nil.String(), "Service-Request-Id: replaced, it is no UUID"},
	} {
		resp, _ := s.do("POST", chatPath, `{}`, "Service-Request-Id", c.sent)
		if got := resp.Header.Get("Service-Warnings"); got != c.warning {
			t.Errorf("%s: warning %q", c.sent, got)
		}
		answered := resp.Header.Get("Service-Id")
		if (answered == c.sent) != (c.warning == "") || uuid.Validate(answered) != nil {
			t.Errorf("%s: id %s", c.sent, answered)
		}
	}
}

// A call that two handlers would record and charge is refused, and recorded once.
func TestTwoRecordersAreRefused(t *testing.T) {
	host, _ := sink(t)
	s := serve(t, options{upstream: host, config: object{}, before: []object{{"handler": "llm_log_test", "provider": "openai"}}})
	resp, body := s.do("POST", chatPath, `{"model":"m"}`)
	if resp.StatusCode != http.StatusInternalServerError || gjson.Get(body, "error.message").Str != errRecorded.Message {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if e := s.record(); e.ErrorMessage != errRecorded.Message || s.kept.appended() != 1 {
		t.Errorf("%d records, of %+v", s.kept.appended(), e.Record)
	}
}

func TestVarsWinOverHeaders(t *testing.T) {
	host, _ := sink(t)
	s := serve(t, options{upstream: host, config: object{}, before: []map[string]any{{
		"handler": "vars", "llm_user_id": "edge", "llm_session_id": "edge-s", "llm_country_code": "AT", "llm_threat": true, "llm_org": "acme",
	}}, app: object{"orgs": object{"acme": object{}}}})
	s.do("POST", chatPath, `{}`, "Service-User-Id", "header", "Service-Session-Id", "header")
	e := s.record()
	if e.UserID != "edge" || e.SessionID != "edge-s" || e.CountryCode != "AT" || !e.Threat || e.Org != "acme" {
		t.Errorf("%+v", e.Record)
	}
}

func TestKeys(t *testing.T) {
	host, got := sink(t)
	app := object{"orgs": object{
		"acme": object{"keys": []object{{"secret": "acme-key"}, {"secret": "query-key", "scopes": []string{"query"}}}},
		"euro": object{"store": "eu", "keys": []object{{"secret": "euro-key"}}},
	}}
	for _, c := range []struct {
		name, path string
		config     object
		auth       []string
		status     int
		answer     string
		org        string
	}{
		{"none", chatPath, object{}, nil, 200, "", "default"},
		{"site's organisation", chatPath, object{"org": "acme"}, nil, 200, "", "acme"},
		{"key", chatPath, object{"require_key": true}, []string{"Service-Auth", "Bearer acme-key"}, 200, "", "acme"},
		{"key of the region", chatPath, object{"store": "eu", "require_key": true}, []string{"Service-Auth", "Bearer euro-key"}, 200, "", "euro"},
		{"missing", chatPath, object{"require_key": true}, nil, 401, "missing_api_key", ""},
		{"unknown", chatPath, object{}, []string{"Service-Auth", "Bearer nope"}, 401, "invalid_api_key", ""},
		{"empty", chatPath, object{}, []string{"Service-Auth", ""}, 401, "invalid_api_key", ""},
		{"unknown, Anthropic", "/v1/messages", object{}, []string{"Service-Auth", "Bearer nope"}, 401, "authentication_error", ""},
		{"unknown, Gemini", "/v1/models/m:generateContent", object{}, []string{"Service-Auth", "Bearer nope"}, 401, "UNAUTHENTICATED", ""},
		{"scope", chatPath, object{}, []string{"Service-Auth", "Bearer query-key"}, 403, "insufficient_scope", ""},
		{"other region", chatPath, object{}, []string{"Service-Auth", "Bearer euro-key"}, 403, "wrong_region", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, options{upstream: host, config: c.config, app: app})
			resp, answer := s.do("POST", c.path, `{}`, c.auth...)
			if resp.StatusCode != c.status || !strings.Contains(answer, c.answer) {
				t.Errorf("%d %s", resp.StatusCode, answer)
			}
			if c.status != 200 {
				if len(got) > 0 || s.kept.appended() > 0 {
					t.Error("a refused call goes on")
				}
				return
			}
			<-got
			e := s.record()
			if e.Org != c.org || (e.AuthHash != "") != (c.auth != nil) {
				t.Errorf("org %s, hash %s", e.Org, e.AuthHash)
			}
		})
	}
}

// No provider gets a key of Weir, wherever a client puts it, and the client learns where it belongs.
func TestKeysOfWeirStayHere(t *testing.T) {
	host, got := sink(t)
	app := object{"orgs": object{"acme": object{"keys": []object{{"secret": "acme-key"}}}}}
	for _, field := range append([]string{"key"}, keyFields...) {
		t.Run(field, func(t *testing.T) {
			s := serve(t, options{upstream: host, config: object{}, app: app})
			send := func(secret string, header ...string) (*http.Response, string) {
				if field == "key" {
					return s.do("POST", chatPath+"?key="+secret+"&limit=1", `{}`, header...)
				}
				return s.do("POST", chatPath, `{}`, append(header, field, secret)...)
			}
			if resp, answer := send("acme-key"); resp.StatusCode != 401 || !strings.Contains(answer, "misplaced_api_key") || !strings.Contains(answer, field+" has a key of Weir") || len(got) > 0 {
				t.Errorf("%s: %d %s", field, resp.StatusCode, answer)
			}
			resp, answer := send("acme-key", "Service-Auth", "Bearer acme-key")
			if resp.StatusCode != 200 || !strings.Contains(resp.Header.Get("Service-Warnings"), field) {
				t.Fatalf("%s, and Service-Auth: %d %s, %s", field, resp.StatusCode, answer, resp.Header)
			}
			if sent := <-got; sent.Header.Get(field) != "" || sent.URL.Query().Has("key") {
				t.Errorf("the provider got %s: %s %v", field, sent.URL, sent.Header)
			}
			if resp, answer := send("sk-of-the-provider"); resp.StatusCode != 200 {
				t.Fatalf("%s: %d %s", field, resp.StatusCode, answer)
			}
			if sent := <-got; sent.Header.Get(field)+sent.URL.Query().Get("key") != "sk-of-the-provider" {
				t.Errorf("the provider did not get %s: %s %v", field, sent.URL, sent.Header)
			}
		})
	}
}

// TestHomeOfRecords holds that no record goes where its organisation does not
// live.
func TestHomeOfRecords(t *testing.T) {
	for name, tc := range map[string]struct {
		handler string
		ok      bool
	}{
		"default elsewhere":      {`{"handler": "llm_log", "store": "eu"}`, false},
		"organisation elsewhere": {`{"handler": "llm_log", "org": "euro"}`, false},
		"organisation at home":   {`{"handler": "llm_log", "org": "euro", "store": "eu"}`, true},
		"keys alone":             {`{"handler": "llm_log", "store": "eu", "require_key": true}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			var config caddy.Config
			err := json.Unmarshal(fmt.Appendf(nil, `{"apps": {
				"llm": {
					"stores": {
						"default": {"storage": {"backend": "test_null", "dir": %q}},
						"eu": {"storage": {"backend": "test_null", "dir": %q}}
					},
					"orgs": {"euro": {"store": "eu"}}
				},
				"http": {"servers": {"s": {"listen": ["127.0.0.1:0"], "routes": [{"handle": [%s]}]}}}
			}}`, t.TempDir(), t.TempDir(), tc.handler), &config)
			if err != nil {
				t.Fatal(err)
			}
			if err := caddy.Validate(&config); tc.ok != (err == nil) || err != nil && !strings.Contains(err.Error(), "require_key") {
				t.Errorf("error %v", err)
			}
		})
	}
}
