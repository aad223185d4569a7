// Package compat tests Weir from outside: a process of its own in front of
// replayed providers, with plain HTTP and with the official clients.
package compat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	_ "github.com/weirhq/weir/modules/standard"
)

// beWeir is the environment variable that makes the test's program a Weir, the
// same that xcaddy/weir is.
const beWeir = "COMPAT_BE_WEIR"

func TestMain(m *testing.M) {
	if os.Getenv(beWeir) != "" {
		caddycmd.Main()
		return
	}
	if os.Getenv(beMCPClient) != "" {
		if err := callMCPTools(os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// recorded is a folder of real traffic of providers, "" if there is none.
var recorded = os.Getenv("WEIR_RECORDINGS")

// patience bounds each wait. What takes so long is broken.
const patience = 10 * time.Second

// recordings are those in testdata and, where there are any, the recorded ones.
func recordings(t *testing.T) []*Recording {
	t.Helper()
	all, err := loadRecordings("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if recorded == "" {
		return all
	}
	more, err := loadRecordings(recorded)
	if err != nil {
		t.Fatal(err)
	}
	return append(all, more...)
}

// weir is a Weir in front of one server that plays every provider.
type weir struct{ url string }

// startQuickstart runs the quickstart.
func startQuickstart(t *testing.T, provider string) *weir {
	t.Helper()
	// Opened here, so that go test knows of the file that it depends on.
	config, err := os.Open("../../examples/quickstart/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	defer config.Close()
	return startWeir(t, config, "OPENAI_UPSTREAM="+provider, "ANTHROPIC_UPSTREAM="+provider, "GEMINI_UPSTREAM="+provider)
}

// startWeir runs a Caddyfile that listens at WEIR_PORT and WEIR_ADMIN_PORT.
func startWeir(t *testing.T, caddyfile io.Reader, env ...string) *weir {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	address := freeport.Address(t)
	var log bytes.Buffer
	cmd := exec.Command(program, "run", "--config", "-", "--adapter", "caddyfile")
	cmd.Stdin = caddyfile
	cmd.Stderr = &log
	cmd.Env = append(os.Environ(), beWeir+"=1", "XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir(),
		"WEIR_PORT="+port(address), "WEIR_ADMIN_PORT="+port(freeport.Address(t)), "WEIR_DATA="+t.TempDir())
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- cmd.Wait() }()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		select {
		case err := <-stopped:
			if err != nil {
				t.Errorf("weir stopped with %v", err)
			}
		case <-time.After(patience):
			t.Error("weir doesn't stop")
			cmd.Process.Kill()
			<-stopped
		}
		if strings.Contains(log.String(), `"level":"error"`) {
			t.Error("weir logged errors")
		}
		if t.Failed() {
			t.Log(log.String())
		}
	})
	await(t, "weir to listen", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return &weir{"http://" + address}
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// proxy is the logging proxy that speaks a recording's dialect.
func (w *weir) proxy(r *Recording) string {
	switch r.Endpoint {
	case "messages":
		return w.url + "/anthropic"
	case "generateContent":
		return w.url + "/gemini"
	default:
		return w.url + "/openai"
	}
}

// record waits for the one record of a user, and fails when there are two.
func (w *weir) record(t *testing.T, user string) gjson.Result {
	t.Helper()
	var records []gjson.Result
	await(t, "the record of "+user, func() bool {
		records = w.query(t, "user_id", user)
		return len(records) > 0
	})
	if len(records) > 1 {
		t.Fatalf("%s has more than one record", user)
	}
	return records[0]
}

// query returns the records that have a value in a field of the filters, two at most.
func (w *weir) query(t *testing.T, field, value string) []gjson.Result {
	t.Helper()
	body := fmt.Sprintf(`{"filter":{"request_response_rmt":{%q:{"equals":%q}}},"limit":2}`, field, value)
	r, err := http.NewRequest("POST", w.url+"/v1/request/query-clickhouse", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer weir-quickstart")
	r.Header.Set("Content-Type", "application/json")
	status, _, answer := do(t, r)
	if status != http.StatusOK || !json.Valid(answer) {
		t.Fatalf("the query answered %d %.500s", status, answer)
	}
	return gjson.GetBytes(answer, "data").Array()
}
