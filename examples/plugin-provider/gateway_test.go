package acme_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
)

// TestGateway builds Weir with the plugin, runs it with the Caddyfile in front of
// an Acme that is played, and calls it as clients do: through the gateway, and
// with Acme's own API through the proxy.
func TestGateway(t *testing.T) {
	weir := serve(t, httptest.NewServer(http.HandlerFunc(playAcme)))

	object := weir.post(t, "/v1/responses", `{"model": "acme/anvil-1", "input": "Say beep."}`)
	if got := gjson.GetBytes(object, "output.0.content.0.text").Str; got != "Beep, beep." {
		t.Errorf("the object is %s", object)
	}
	stream := weir.post(t, "/v1/responses", `{"model": "anvil-1", "input": "Say beep.", "stream": true}`)
	result, err := plugintest.Check(stream)
	if err != nil {
		t.Fatalf("an illegal stream: %v\n%s", err, stream)
	}
	if got := gjson.GetBytes(result.Response, "output.0.content.0.text").Str; got != "Beep, beep." || !result.Done {
		t.Errorf("the stream is %s", stream)
	}

	// Acme's own stream passes as it is.
	native := weir.post(t, "/acme/generate", `{"model": "anvil-1", "turns": [{"from": "user", "text": "Say beep."}], "stream": true}`)
	if want, err := os.ReadFile("testdata/text.sse"); err != nil || !bytes.Equal(native, want) {
		t.Errorf("through llm_proxy comes %s, %v", native, err)
	}

	var records gjson.Result
	for end := time.Now().Add(10 * time.Second); len(records.Array()) < 3 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		records = gjson.GetBytes(weir.post(t, "/v1/request/query-clickhouse", `{"filter": "all", "limit": 10}`), "data")
	}
	if len(records.Array()) != 3 {
		t.Fatalf("three calls left the records %s", records)
	}
	proxied := false
	for _, r := range records.Array() {
		// 8 tokens at $1 a million, 4 cached at $0.10, 3 out at $4.
		if r.Get("provider").Str != "acme" || r.Get("model").Str != "anvil-1" || r.Get("cost").Raw != "0.0000204" {
			t.Errorf("the record is %s", r)
		}
		proxied = proxied || r.Get("response_body.text").Str == "Beep, beep." && r.Get("stream").Bool() && r.Get("finish_reason").Str == "done"
	}
	if !proxied {
		t.Errorf("no record has Acme's own stream as one answer: %s", records)
	}
}

// playAcme answers what the fixtures say.
func playAcme(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	asked := gjson.ParseBytes(body)
	if r.URL.Path != "/generate" || r.Header.Get("Acme-Key") != "platform-key" || asked.Get("model").Str != "anvil-1" || asked.Get("turns.0.text").Str != "Say beep." {
		http.Error(w, `{"error":{"message":"No."}}`, http.StatusBadRequest)
		return
	}
	file, contentType := "testdata/text.json", "application/json"
	if asked.Get("stream").Bool() {
		file, contentType = "testdata/text.sse", "text/event-stream"
	}
	answer, _ := os.ReadFile(file)
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(answer)
}

// site is the base URL of a running Weir.
type site string

// serve runs Weir until the test ends.
func serve(t *testing.T, acme *httptest.Server) site {
	t.Helper()
	t.Cleanup(acme.Close)
	folder, port := t.TempDir(), freePort(t)
	binary := filepath.Join(folder, "weir")
	if out, err := exec.Command("go", "build", "-o", binary, "./xcaddy/weir").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var log bytes.Buffer
	weir := exec.Command(binary, "run", "--config", "Caddyfile")
	weir.Env = append(os.Environ(), "ACME_API_KEY=platform-key", "ACME_UPSTREAM="+acme.URL, "WEIR_API_KEY=k",
		"WEIR_PORT="+port, "WEIR_ADMIN_PORT="+freePort(t), "WEIR_DATA="+folder, "XDG_DATA_HOME="+folder)
	weir.Stdout, weir.Stderr = &log, &log
	if err := weir.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = weir.Process.Signal(os.Interrupt)
		if err := weir.Wait(); err != nil || t.Failed() {
			t.Logf("%v\n%s", err, log.String())
		}
	})
	s := site("http://127.0.0.1:" + port)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get(string(s) + "/v1/models"); err == nil {
			resp.Body.Close()
			return s
		}
	}
	t.Fatal("Weir does not start")
	return ""
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

func (s site) post(t *testing.T, path, body string) []byte {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, string(s)+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(path, "/acme/") { // a client of Acme's own, with a key of Acme beside the one of Weir
		r.Header.Set("Service-Auth", "Bearer k")
		r.Header.Set("Acme-Key", "platform-key")
	} else {
		r.Header.Set("Authorization", "Bearer k")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %v, %s: %s", path, err, resp.Status, answer)
	}
	return answer
}
