//go:build linux

package durability

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// TestRealtime passes the same conversation through the proxy and through the gateway:
// the records of its response are the same, and the end of the process closes both.
func TestRealtime(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, _, err := ws.UpgradeHTTP(r, w)
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			message, err := wsutil.ReadClientText(readWriter{buffered, conn})
			if err != nil {
				return
			}
			if !strings.Contains(string(message), "response.create") {
				continue
			}
			for _, event := range []string{
				`{"type":"session.created","session":{"model":"gpt-realtime-2025-08-28"}}`,
				`{"type":"response.created","response":{"id":"r1","status":"in_progress","output":[]}}`,
				`{"type":"response.output_audio.delta","response_id":"r1","delta":"AAAA"}`,
				`{"type":"response.done","response":{"object":"realtime.response","id":"r1","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_audio","transcript":"hi"}]}],` +
					`"usage":{"total_tokens":300,"input_tokens":200,"input_token_details":{"audio_tokens":150,"cached_tokens":50,"cached_tokens_details":{"audio_tokens":40}},"output_tokens":100,"output_token_details":{"audio_tokens":90}}}}`,
			} {
				if wsutil.WriteServerText(conn, []byte(event)) != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(upstream.Close)
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(config{
		llm:  "provider openai {\nbase_url " + upstream.URL + "/v1\napi_key x\n}",
		site: "llm_gateway\nhandle_path /proxied/* {\nllm_proxy openai " + upstream.URL + "\n}",
	})
	open := func(path, user string) net.Conn {
		header := http.Header{"Authorization": {"Bearer " + key}, "Service-User-Id": {user}, "Service-Auth": {"Bearer " + key}}
		conn, _, _, err := (&ws.Dialer{Header: ws.HandshakeHeaderHTTP(header)}).Dial(t.Context(), "ws://"+w.site+path+"/v1/realtime?model=gpt-realtime")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(waitLimit))
		for _, message := range []string{`{"type":"session.update","session":{"instructions":"Be brief."}}`, `{"type":"response.create"}`} {
			if err := wsutil.WriteClientText(conn, []byte(message)); err != nil {
				t.Fatal(err)
			}
		}
		for message := []byte(nil); !strings.Contains(string(message), "response.done"); {
			if message, err = wsutil.ReadServerText(conn); err != nil {
				t.Fatal(err)
			}
		}
		return conn
	}
	open("/proxied", "of-proxy").Close()
	idle := open("", "of-gateway")
	w.flush()
	record := func(user string) map[string]any {
		_, answer := w.as(t, key, "POST", "/v1/request/query-clickhouse", `{"filter":{"request_response_rmt":{"user_id":{"equals":"`+user+`"}}},"sort":{"created_at":"asc"}}`)
		var page struct{ Data []map[string]any }
		if err := json.Unmarshal([]byte(answer), &page); err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Data {
			if r["response_status"] == 200.0 {
				return r
			}
		}
		t.Fatalf("no response is recorded: %s", answer)
		return nil
	}
	proxied, routed := record("of-proxy"), record("of-gateway")
	own := []string{
		"request_id", "request_created_at", "response_created_at", "updated_at", "delay_ms", "time_to_first_token", "time_to_last_token",
		"attempt", "request_referrer", "request_user_id", "account",
	}
	for field := range routed {
		if !slices.Contains(own, field) && !reflect.DeepEqual(proxied[field], routed[field]) {
			t.Errorf("%s is %v of the proxy, and %v of the gateway", field, proxied[field], routed[field])
		}
	}
	if cost, ok := routed["cost"].(float64); !ok || cost == 0 || routed["prompt_audio_tokens"] != 150.0 {
		t.Errorf("the record is %v", routed)
	}
	w.terminate()
	_, err := wsutil.ReadServerText(readWriter{idle, io.Discard})
	if closed, ok := errors.AsType[wsutil.ClosedError](err); !ok || closed.Code != ws.StatusGoingAway {
		t.Error("the end of the process:", err)
	}
	w.wait()
}

// readWriter reads from the one and writes to the other.
type readWriter struct {
	io.Reader
	io.Writer
}
