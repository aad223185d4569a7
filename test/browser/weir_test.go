// Package browser opens the dashboard in a real Chromium.
package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// limit bounds every wait for something that must happen.
const limit = 20 * time.Second

// weir is a running Weir.
type weir struct {
	t       testing.TB
	url     string
	key     string
	process *exec.Cmd
	dir     string
	config  string
	port    string
	admin   string
}

// program is the binary that WEIR_BINARY names, or one that is built once.
var program = sync.OnceValues(func() (string, error) {
	if name := os.Getenv("WEIR_BINARY"); name != "" {
		return name, nil
	}
	name := filepath.Join(scratch, "weir")
	build := exec.Command("go", "build", "-o", name, "./xcaddy/weir")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return name, nil
})

// freePort is a port that is free, and stays free until a server of the test has it: the system
// takes those of outgoing connections from 32768 on.
func freePort(t testing.TB) string {
	for {
		port := strconv.Itoa(12_000 + rand.IntN(20_000))
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			listener.Close()
			return port
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// newWeir runs the configuration of a file with data of its own.
func newWeir(t testing.TB, config string) *weir {
	t.Helper()
	return newWeirIn(t, t.TempDir(), config)
}

func newWeirIn(t testing.TB, dir, config string) *weir {
	t.Helper()
	requireBrowser(t)
	w := &weir{t: t, key: "weir-quickstart", dir: dir, config: config, port: freePort(t), admin: freePort(t)}
	w.url = "http://127.0.0.1:" + w.port
	w.start()
	t.Cleanup(w.stop)
	return w
}

func (w *weir) start() {
	w.t.Helper()
	name, err := program()
	if err != nil {
		w.t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(w.dir, "weir.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	w.process = exec.Command(name, "run", "--config", w.config)
	w.process.Env = append(os.Environ(), "WEIR_DATA="+w.dir, "WEIR_PORT="+w.port, "WEIR_ADMIN_PORT="+w.admin, "XDG_DATA_HOME="+w.dir, "XDG_CONFIG_HOME="+w.dir)
	w.process.Stdout, w.process.Stderr = log, log
	if err := w.process.Start(); err != nil {
		w.t.Fatal(err)
	}
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get(w.url + "/"); err == nil {
			resp.Body.Close()
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			w.t.Fatalf("Weir does not serve %s: %s", w.url, text)
		}
	}
}

func (w *weir) stop() {
	_ = w.process.Process.Signal(syscall.SIGTERM)
	_ = w.process.Wait()
}

// demo fills the store with made-up history.
func (w *weir) demo(args ...string) {
	w.t.Helper()
	name, _ := program()
	out, err := exec.Command(name, append([]string{"demo", "--once", "--address", w.url}, args...)...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}

// post sends a body with headers "Name: value" and returns the answer.
func (w *weir) post(path string, body any, headers ...string) []byte {
	w.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.send(path, text, headers...)
}

func (w *weir) send(path string, body []byte, headers ...string) []byte {
	w.t.Helper()
	answer, err := w.try(path, body, headers...)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

func (w *weir) try(path string, body []byte, headers ...string) ([]byte, error) {
	request, err := http.NewRequest(http.MethodPost, w.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Close = true // a server that is reloaded closes connections that wait
	request.Header.Set("Content-Type", "application/json")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s: %s", path, response.Status, answer)
	}
	return answer, err
}

// chat is a call of the provider that needs no network.
func (w *weir) chat(model, prompt string, headers ...string) {
	w.t.Helper()
	w.post("/echo/v1/chat/completions", map[string]any{"model": model, "messages": []any{map[string]string{"role": "user", "content": prompt}}}, headers...)
}

// query asks the API, and decodes what is in "data".
func (w *weir) query(path string, body, into any) {
	w.t.Helper()
	answer := struct{ Data any }{into}
	if err := json.Unmarshal(w.post(path, body, "Authorization: Bearer "+w.key), &answer); err != nil {
		w.t.Fatal(err)
	}
}

// until waits until so many records can be queried.
func (w *weir) until(records int) {
	w.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		found := w.recorded()
		if found >= records {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d of %d records", found, records)
		}
	}
}

// recorded is how many records can be queried, once the store is not too busy to say.
func (w *weir) recorded() int {
	w.t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		answer, err := w.try("/v1/facets/query", []byte(`{"fields":["provider"]}`), "Authorization: Bearer "+w.key)
		var found struct{ Data struct{ Count int } }
		if err == nil {
			err = json.Unmarshal(answer, &found)
		}
		if err == nil {
			return found.Data.Count
		}
		if time.Since(began) > 10*time.Minute {
			w.t.Fatal(err)
		}
	}
}

// shared is the quickstart with two days of made-up history. Tests only read it.
var shared struct {
	sync.Once
	*weir
}

func quickstart(t *testing.T) *weir {
	t.Helper()
	requireBrowser(t)
	shared.Do(func() {
		dir := filepath.Join(scratch, "quickstart")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		w := &weir{t: t, key: "weir-quickstart", dir: dir, config: "../../examples/quickstart/Caddyfile", port: freePort(t), admin: freePort(t)}
		w.url = "http://127.0.0.1:" + w.port
		w.start()
		w.demo("--days", "2")
		shared.weir = w
	})
	if shared.weir == nil {
		t.Fatal("the quickstart did not start")
	}
	w := *shared.weir
	w.t = t
	return &w
}
