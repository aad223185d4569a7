//go:build linux

// Package cluster holds that several nodes lose nothing and spend nothing twice.
package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
)

var (
	clients = flag.Int("clients", 40, "how many clients call at the same time")
	kills   = flag.Int("kills", 3, "how often a node, Redis and ClickHouse are killed each")
)

const (
	nodes = 3
	// answered is what each call costs: 1000 tokens in and 500 out of gpt-4o.
	answered = 7_500_000 // nanodollars
	// reserved is what each call sets aside at most: its body and 1000 tokens out.
	reserved = 11_000_000
	granted  = 10_000_000_000
)

// Clients of three nodes spend the credits of one organisation, while nodes, Redis and
// ClickHouse are killed. Not more than one reservation beyond what was granted is
// spent, every answer has its record, once, and the records cost what was spent, but
// for charges whose record a kill prevented.
func TestKills(t *testing.T) {
	c := start(t)
	var mu sync.Mutex
	ended := map[string]bool{} // the ids of answers that a client had to their ends
	var spentOut atomic.Bool
	var group sync.WaitGroup
	for range *clients {
		group.Go(func() {
			for refused := 0; refused < 3 && t.Context().Err() == nil; {
				switch status, id := c.call(t); status {
				case http.StatusOK:
					mu.Lock()
					if ended[id] {
						t.Errorf("two calls have the id %s", id)
					}
					ended[id] = true
					mu.Unlock()
				case http.StatusPaymentRequired:
					refused++
					time.Sleep(200 * time.Millisecond)
				default: // killed, or nothing to pay with
					refused = 0
					time.Sleep(50 * time.Millisecond)
				}
			}
			spentOut.Store(true)
		})
	}
	for range *kills {
		for _, kill := range []func(){c.killNode, c.killRedis, c.killClickHouse} {
			time.Sleep(rand.N(600 * time.Millisecond))
			kill()
		}
	}
	group.Wait()

	records, cost := map[string]int{}, 0.0
	deadline := time.Now().Add(time.Minute)
	for ; time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		records, cost = c.records(t)
		if missing(ended, records) == 0 {
			break
		}
	}
	if n := missing(ended, records); n > 0 {
		t.Errorf("of %d answers %d have no record", len(ended), n)
	}
	for id, n := range records {
		if n > 1 {
			t.Errorf("%s is recorded %d times", id, n)
		}
	}
	spent := c.spent(t)
	if spent > granted+reserved {
		t.Errorf("%d are spent of %d", spent, granted)
	}
	if between := spent - int64(math.Round(cost*1e9)); between < 0 || between > int64(*kills*nodes**clients*answered) {
		t.Errorf("the records cost $%.9f, and $%.9f are spent", cost, float64(spent)/1e9)
	}
	t.Logf("%d answers, %d records of $%.4f, $%.4f are spent, after %d kills of each", len(ended), len(records), cost, float64(spent)/1e9, *kills)
}

func missing(ended map[string]bool, records map[string]int) (n int) {
	for id := range ended {
		if records[id] == 0 {
			n++
		}
	}
	return n
}

// cluster is three nodes and what they share, behind a balancer.
type cluster struct {
	t          *testing.T
	binary     string
	env        []string
	clickhouse *clickhousetest.Server
	redis      func() *exec.Cmd
	server     *exec.Cmd // of redis
	nodes      [nodes]*node
	balancer   string // its address
}

type node struct {
	dir, port, admin string
	process          *exec.Cmd
}

func start(t *testing.T) *cluster {
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("REQUIRE_REDIS") != "" {
			t.Fatal(err)
		}
		t.Skip("redis-server is not installed")
	}
	c := &cluster{t: t, clickhouse: clickhousetest.Start(t), binary: filepath.Join(t.TempDir(), "weir")}
	if out, err := exec.Command("go", "build", "-o", c.binary, "./weir").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	upstream := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(upstream.Close)

	dir, port := t.TempDir(), freePort(t)
	c.redis = func() *exec.Cmd {
		return exec.Command("redis-server", "--port", port, "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
	}
	c.startRedis()
	t.Cleanup(func() { _ = c.server.Process.Kill() })
	c.env = append(os.Environ(),
		"CLICKHOUSE="+c.clickhouse.Addr, "REDIS_URL=redis://127.0.0.1:"+port, "OPENAI_BASE_URL="+upstream.URL+"/v1", "OPENAI_API_KEY=x")
	var addresses []string
	for i := range c.nodes {
		c.nodes[i] = &node{dir: t.TempDir(), port: freePort(t), admin: freePort(t)}
		addresses = append(addresses, "127.0.0.1:"+c.nodes[i].port)
		c.startNode(c.nodes[i])
	}
	balancer := freePort(t)
	c.balancer = "http://127.0.0.1:" + balancer
	c.run("balancer/Caddyfile", "BALANCER_PORT="+balancer, "NODES="+strings.Join(addresses, " "), "XDG_DATA_HOME="+t.TempDir())
	for _, n := range c.nodes {
		c.wait("http://127.0.0.1:" + n.port + "/health/ready")
	}
	c.wait(c.balancer + "/health/ready")
	return c
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// run runs Weir until the test ends.
func (c *cluster) run(config string, env ...string) *exec.Cmd {
	c.t.Helper()
	process := exec.Command(c.binary, "run", "--config", config)
	process.Env = append(c.env, env...)
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if testing.Verbose() {
		process.Stderr = os.Stderr
	}
	if err := process.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	return process
}

func (c *cluster) startNode(n *node) {
	n.process = c.run("Caddyfile", "WEIR_PORT="+n.port, "WEIR_ADMIN_PORT="+n.admin, "WEIR_DATA="+n.dir, "XDG_DATA_HOME="+n.dir)
}

func (c *cluster) wait(url string) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(url)
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
	c.t.Fatalf("%s is not ready within a minute", url)
}

func (c *cluster) killNode() {
	n := c.nodes[rand.N(nodes)]
	_ = n.process.Process.Kill()
	_, _ = n.process.Process.Wait()
	time.Sleep(rand.N(300 * time.Millisecond))
	c.startNode(n)
}

func (c *cluster) killRedis() {
	_ = c.server.Process.Kill()
	_ = c.server.Wait()
	time.Sleep(rand.N(time.Second))
	c.startRedis()
}

func (c *cluster) startRedis() {
	c.server = c.redis()
	out, err := c.server.StdoutPipe()
	if err == nil {
		err = c.server.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "eady to accept connections") {
			go io.Copy(io.Discard, out)
			return
		}
	}
	c.t.Fatal("redis-server does not start")
}

func (c *cluster) killClickHouse() {
	c.clickhouse.Kill()
	time.Sleep(rand.N(time.Second))
	c.clickhouse.Restart(c.t)
}

// call makes one call of the organisation, with an id of its own. The status is 0 where
// the answer does not come to its end.
func (c *cluster) call(t *testing.T) (status int, id string) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream := rand.N(2) == 0
	body := fmt.Sprintf(`{"model":"openai/gpt-4o","max_tokens":1000,"stream":%t,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"What does it cost?"}]}`, stream)
	if !stream {
		body = strings.Replace(body, `"stream_options":{"include_usage":true},`, "", 1)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.balancer+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	r.Header.Set("Authorization", "Bearer weir-acme")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil && !(stream && strings.HasSuffix(string(text), "[DONE]\n\n")) {
		return 0, ""
	}
	if resp.StatusCode == http.StatusOK && stream && !strings.HasSuffix(string(text), "[DONE]\n\n") {
		return 0, ""
	}
	return resp.StatusCode, resp.Header.Get("Service-Id")
}

// answer is the provider's.
func answer(w http.ResponseWriter, r *http.Request) {
	const usage = `{"prompt_tokens":1000,"completion_tokens":500,"total_tokens":1500}`
	var request struct{ Stream bool }
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	time.Sleep(rand.N(50 * time.Millisecond))
	if !request.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Little."},"finish_reason":"stop"}],"usage":%s}`, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []string{
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"role":"assistant","content":"Little."},"finish_reason":null}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[],"usage":` + usage + `}`,
		`[DONE]`,
	} {
		fmt.Fprintf(w, "data: %s\n\n", event)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(rand.N(10 * time.Millisecond))
	}
}

// records are how often each id is recorded, and what all records cost, as the export
// of any node says.
func (c *cluster) records(t *testing.T) (ids map[string]int, cost float64) {
	t.Helper()
	ids = map[string]int{}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+c.nodes[rand.N(nodes)].port+"/v1/export", strings.NewReader(`{"filter":"all"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer weir-acme")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Logf("export: %s: %s", resp.Status, text)
		return ids, 0
	}
	for d := json.NewDecoder(resp.Body); ; {
		var record struct {
			ID   string   `json:"request_id"`
			Cost *float64 `json:"cost"`
		}
		if err := d.Decode(&record); errors.Is(err, io.EOF) {
			return ids, cost
		} else if err != nil {
			t.Fatal(err)
		}
		ids[record.ID]++
		if record.Cost != nil {
			cost += *record.Cost
		}
	}
}

// spent is what the organisation has spent, as a node's admin endpoint says.
func (c *cluster) spent(t *testing.T) int64 {
	t.Helper()
	out, err := exec.Command(c.binary, "credits", "--format", "json", "--admin", "127.0.0.1:"+c.nodes[0].admin).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var balances []struct {
		Org   string      `json:"org"`
		Spent json.Number `json:"spent"`
	}
	if err := json.Unmarshal(out, &balances); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, b := range balances {
		if b.Org == "acme" {
			dollars, err := b.Spent.Float64()
			if err != nil {
				t.Fatal(err)
			}
			return int64(math.Round(dollars * 1e9))
		}
	}
	t.Fatalf("acme has no credits: %s", out)
	return 0
}
