package compat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

// TestWebhooks sends an alert to receivers that verify it by the libraries of Standard Webhooks
// (https://github.com/standard-webhooks/standard-webhooks).
func TestWebhooks(t *testing.T) {
	if !*withClients {
		t.Skip("the clients need Node.js and Python: see README.md, then go test ./test/compat -compat")
	}
	type message struct {
		Secret  string            `json:"secret"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	got := make(chan message, 1)
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("secret! ", 4)))
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m := message{secret, make(map[string]string), string(body)}
		for name := range r.Header {
			m.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		got <- m
	}))
	defer receiver.Close()
	w := startWeir(t, strings.NewReader(`{
	admin 127.0.0.1:{$WEIR_ADMIN_PORT}
	persist_config off
	llm {
		store sqlite {$WEIR_DATA}/weir.db
		key weir-admin admin
		channel ops webhook `+receiver.URL+` {
			secret `+secret+`
		}
	}
}
http://:{$WEIR_PORT} {
	bind 127.0.0.1
	llm_control
}`))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/alerts/channels/ops/test", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer weir-admin")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, answer)
	}
	text, err := json.Marshal(<-got)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"node", "node/webhooks.js"}, {"python/.venv/bin/python", "python/webhooks.py"}} {
		verify := exec.CommandContext(t.Context(), command[0], command[1:]...)
		verify.Stdin = bytes.NewReader(text)
		if out, err := verify.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "alert.test" {
			t.Errorf("%s: %v: %s", command[1], err, out)
		}
	}
}
