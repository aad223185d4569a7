package clickhouse_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	backend "github.com/weirhq/weir/storage/clickhouse"
	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
	"github.com/weirhq/weir/storage/journal"
)

var full = flag.Bool("full", false, "kill the server twenty times, under traffic")

// copied is how many records TestCopyThereAndBack copies at least.
var copied = flag.Int("copied", 0, "copy so many records there and back")

// lossy passes connections to a server on, and breaks some off in place of the
// acknowledgement of an insert.
type lossy struct {
	net.Listener
	server  string
	share   float64
	dropped atomic.Int64
}

func startLossy(t *testing.T, server string, share float64) *lossy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lossy{Listener: listener, server: server, share: share}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.pass(client)
		}
	}()
	return p
}

// blockBytes is what a client sends at least when it inserts rows.
const blockBytes = 8 << 10

func (p *lossy) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	var sent atomic.Int64 // since the last answer
	go func() {
		defer server.Close()
		_, _ = io.Copy(io.MultiWriter(server, counter{&sent}), client)
	}()
	answer := make([]byte, 64<<10)
	for {
		n, err := server.Read(answer)
		if err != nil {
			return
		}
		if sent.Swap(0) >= blockBytes && rand.Float64() < p.share {
			p.dropped.Add(1)
			return
		}
		if _, err := client.Write(answer[:n]); err != nil {
			return
		}
	}
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

// Records of several nodes arrive exactly once, whatever becomes of acknowledgements
// and of the server meanwhile. Traffic does not notice.
func TestExactlyOnce(t *testing.T) {
	const nodes = 3
	kills, perSecond, pause := 1, 100, 500*time.Millisecond
	if *full {
		kills, perSecond, pause = 20, 333, 3*time.Second
	}
	server := clickhousetest.Start(t, "")
	proxy := startLossy(t, server.Addr, 0.3)
	store := func() storage.Backend {
		return backend.New(backend.Config{Options: clickhouse.Options{
			Addr: []string{proxy.Addr().String()}, Auth: clickhouse.Auth{Database: "weir"}, DialTimeout: time.Second,
		}})
	}
	traffic, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var journals []*journal.Journal
	var appended [nodes]int
	var slowest [nodes]time.Duration
	for node := range nodes {
		j, err := journal.Open(t.Context(), store(), journal.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Close(context.Background()) })
		journals = append(journals, j)
		running.Go(func() {
			tick := time.NewTicker(time.Second / time.Duration(perSecond))
			defer tick.Stop()
			for {
				select {
				case <-traffic.Done():
					return
				case <-tick.C:
				}
				start := time.Now()
				r := &storage.Record{
					ID: uuid.Must(uuid.NewV7()), Org: "acme", CreatedAt: storage.Millis(start), NodeID: fmt.Sprint(node),
					Cost: plugins.KnownCost(1), Status: plugins.Known(200),
				}
				j.Begin(r)
				if err := j.Append(r, storagetest.Kept(r, &storage.Content{Request: storage.Body{Type: "text/plain", Data: []byte(r.ID.String())}})); err != nil {
					t.Error(err)
					return
				}
				if err := j.AppendAnnotation(&storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.CreatedAt, Scores: map[string]float64{"n": 1}}); err != nil {
					t.Error(err)
					return
				}
				appended[node]++
				slowest[node] = max(slowest[node], time.Since(start))
			}
		})
	}
	for range kills {
		time.Sleep(pause + rand.N(pause))
		server.Kill()
		time.Sleep(rand.N(pause))
		server.Restart(t)
	}
	time.Sleep(pause)
	stop()
	running.Wait()
	want := 0
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for node, j := range journals {
		if err := j.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		want += appended[node]
	}

	direct := backend.New(backend.Config{Options: clickhouse.Options{Addr: []string{server.Addr}, Auth: clickhouse.Auth{Database: "weir"}}})
	if _, err := direct.Open(t.Context(), &storage.Host{}); err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	got, err := direct.Requests(t.Context(), &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Limit: 2 * want})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != want {
		t.Errorf("%d records arrived, want %d", len(got), want)
	}
	for _, r := range got {
		if r.Scores["n"] != 1 {
			t.Errorf("record %s has the scores %v", r.ID, r.Scores)
		}
	}
	err = direct.Groups(t.Context(), &storage.GroupQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always}, func(g *storage.GroupTotals) error {
		if g.Requests != int64(want) || g.Cost != plugins.KnownCost(plugins.Nanodollars(want)) {
			t.Errorf("%d requests cost %v, want %d", g.Requests, g.Cost, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got[:min(100, len(got))] {
		if c, err := direct.Content(t.Context(), r); err != nil || c == nil || string(c.Request.Data) != r.ID.String() {
			t.Errorf("the content of record %s is %v, %v", r.ID, c, err)
		}
	}
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{server.Addr}, Auth: clickhouse.Auth{Database: "weir"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var rows uint64
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM records").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records of %d nodes, %d rows; %d kills, %d acknowledgements lost; the slowest append took %v", want, nodes, rows, kills, proxy.dropped.Load(), slowest)
}
