//go:build linux

package durability

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
)

// TestNodesCap is TestCap for three nodes that share a budget in Redis, while nodes and Redis are
// killed. The records of the three nodes together cost what the budget counts, to the
// nanodollar, because each node settles what its killed processes have left.
func TestNodesCap(t *testing.T) {
	if !*full {
		t.Skip("takes minutes: -full")
	}
	const limit, spenders, kills = 10_000_000_000, 200, 20
	program := clusterProgram(t)
	m := new(meter)
	upstream := httptest.NewServer(m)
	t.Cleanup(upstream.Close)
	redis := startRedis(t)
	c := config{
		store: "shared redis redis://127.0.0.1:" + redis.port + " {\nlease 2s\n}",
		site:  "llm_gateway\nllm_control",
		llm:   "secret the-same" + cappedPayer(upstream.URL)}
	began := time.Now()
	var nodes [3]*weir
	for i := range nodes {
		nodes[i] = newWeir(t, newProvider(t))
		nodes[i].program, nodes[i].upstream = program, upstream.URL
		nodes[i].start(c)
	}
	var answered, refused atomic.Int64
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for range spenders {
		group.Go(func() {
			for spent := 0; spent < 5 && ctx.Err() == nil; {
				switch status := nodes[rand.N(len(nodes))].spend(ctx); status {
				case http.StatusOK:
					answered.Add(1)
					spent = 0
				case http.StatusPaymentRequired:
					refused.Add(1)
					spent++
				default: // killed, held by others, or without Redis
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	for range kills {
		time.Sleep(rand.N(2 * time.Second))
		w := nodes[rand.N(len(nodes))]
		w.kill()
		redis.kill()
		time.Sleep(rand.N(500 * time.Millisecond))
		w.launch(c) // Redis may come later
		redis.run()
		w.await("the node is ready", func() bool { return w.ready() == nil && w.listens() })
	}
	group.Wait()
	for _, w := range nodes {
		w.kill() // with what runs in the background
	}
	for _, w := range nodes {
		w.start(c)
	}
	var counted gjson.Result
	var cost int64 // nanodollars
	var records, left int
	sum := func() bool {
		cost, records, left = 0, 0, 0
		for _, w := range nodes {
			w.flush()
			for _, r := range w.query("", payer, began) {
				if r.Cost != nil {
					cost += nanodollars(*r.Cost)
				}
				if r.EndState == "interrupted" {
					left++
				}
				records++
			}
		}
		answer, _, err := nodes[0].pays(t.Context(), "GET", "/v1/key", "", "")
		if err != nil {
			t.Fatal(err)
		}
		counted = gjson.Get(answer, "data.budgets.0.accounts.0")
		return cost == nanodollars(counted.Get("spent").Num) && counted.Get("reserved").Num == 0
	}
	for end := time.Now().Add(waitLimit); !sum() && time.Now().Before(end); {
		time.Sleep(time.Second)
	}
	spent, charged := nanodollars(counted.Get("spent").Num), m.charged.Load()
	if charged > limit || spent > limit || charged > spent {
		t.Errorf("the provider charged %d, and %d are spent of %d", charged, spent, int64(limit))
	}
	if cost != spent || counted.Get("reserved").Num != 0 {
		t.Errorf("the records cost %d, and the budget counts %s", cost, counted.Raw)
	}
	if answered.Load() == 0 || spent < limit/10*9 || left == 0 {
		t.Errorf("%d answers, %d calls that were cut off and %d spent prove nothing", answered.Load(), left, spent)
	}
	t.Logf("%d kills: %d answers, %d refused, %d records of %d, %d of them cut off, %d are spent, the provider charged %d",
		kills, answered.Load(), refused.Load(), records, cost, left, spent, charged)
}

// clusterProgram builds the weir that shares in Redis.
func clusterProgram(t *testing.T) string {
	program := filepath.Join(t.TempDir(), "weir")
	build := exec.Command("go", "build", "-o", program, "./weir")
	build.Dir = "../../examples/cluster"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// redisServer keeps what it acknowledges over its kills.
type redisServer struct {
	t         *testing.T
	dir, port string
	process   *exec.Cmd
}

func startRedis(t *testing.T) *redisServer {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed")
	}
	r := &redisServer{t: t, dir: t.TempDir(), port: freeport.Port(t)}
	r.run()
	t.Cleanup(r.kill)
	return r
}

// run starts the server, and waits until it takes commands.
func (r *redisServer) run() {
	r.t.Helper()
	r.process = exec.Command("redis-server", "--port", r.port, "--dir", r.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
	r.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := r.process.StdoutPipe()
	if err == nil {
		err = r.process.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "eady to accept connections") {
			go io.Copy(io.Discard, out)
			return
		}
	}
	r.t.Fatal("redis-server does not start")
}

func (r *redisServer) kill() {
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
}
