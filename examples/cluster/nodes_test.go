//go:build linux

package cluster

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
)

// cluster is three nodes and what they share, behind a balancer.
type cluster struct {
	t          *testing.T
	binary     string
	env        []string
	clickhouse *clickhousetest.Server
	redis      func() *exec.Cmd
	server     *exec.Cmd // of redis
	nodes      [nodes]*node
	balancer   string       // its address
	granted    int64        // nanodollars
	asked      atomic.Int64 // what the calls cost that came to the provider, in nanodollars
}

type node struct {
	dir, port, admin string
	process          *exec.Cmd
}

func (n *node) address() string { return "http://127.0.0.1:" + n.port }

func start(t *testing.T) *cluster {
	c := &cluster{t: t, granted: 10_000_000_000}
	if *rate > 0 {
		c.granted *= 1000
	}
	c.keepRedis()
	c.clickhouse = clickhousetest.Start(t, "")
	c.binary = build(t)
	upstream := httptest.NewServer(http.HandlerFunc(c.answer))
	t.Cleanup(upstream.Close)

	c.env = append(c.env, fmt.Sprintf("ACME_CREDITS=%d.00", c.granted/1e9),
		"CLICKHOUSE="+c.clickhouse.Addr, "OPENAI_BASE_URL="+upstream.URL+"/v1", "OPENAI_API_KEY=x")
	var addresses []string
	for i := range c.nodes {
		c.nodes[i] = &node{dir: t.TempDir(), port: freeport.Port(t), admin: freeport.Port(t)}
		addresses = append(addresses, "127.0.0.1:"+c.nodes[i].port)
		c.startNode(c.nodes[i])
	}
	balancer := freeport.Port(t)
	c.balancer = "http://127.0.0.1:" + balancer
	c.run("balancer/Caddyfile", "BALANCER_PORT="+balancer, "NODES="+strings.Join(addresses, " "), "XDG_DATA_HOME="+t.TempDir())
	for _, n := range c.nodes {
		c.wait(n.address() + "/health/ready")
	}
	c.wait(c.balancer + "/health/ready")
	return c
}

// sharing starts nodes of a Caddyfile, which have records of their own and share a Redis.
func sharing(t *testing.T, caddyfile string, count int, env ...string) (*cluster, []*node) {
	t.Helper()
	c := &cluster{t: t}
	c.keepRedis()
	c.binary = build(t)
	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte(caddyfile), 0o600); err != nil {
		t.Fatal(err)
	}
	c.env = append(c.env, env...)
	started := make([]*node, count)
	for i := range started {
		n := &node{dir: t.TempDir(), port: freeport.Port(t)}
		n.process = c.run(config, "WEIR_PORT="+n.port, "WEIR_DATA="+n.dir, "XDG_DATA_HOME="+n.dir)
		started[i] = n
	}
	for _, n := range started {
		c.wait(n.address() + "/health/ready")
	}
	return c, started
}

var built string // the binary

func build(t *testing.T) string {
	if built == "" {
		dir, err := os.MkdirTemp("", "weir-cluster")
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("go", "build", "-o", dir, "./weir").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		built = filepath.Join(dir, "weir")
	}
	return built
}

func TestMain(m *testing.M) {
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 1000
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
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

// keepRedis starts a Redis, which keeps what it acknowledges over its kills.
func (c *cluster) keepRedis() {
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("REQUIRE_REDIS") != "" {
			c.t.Fatal(err)
		}
		c.t.Skip("redis-server is not installed")
	}
	dir, port := c.t.TempDir(), freeport.Port(c.t)
	c.redis = func() *exec.Cmd {
		return exec.Command("redis-server", "--port", port, "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
	}
	c.startRedis()
	c.t.Cleanup(func() { _ = c.server.Process.Kill() })
	c.env = append(os.Environ(), "REDIS_URL=redis://127.0.0.1:"+port)
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
