package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirhq/weir/internal/testkit/filedamage"
	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
	backend "github.com/weirhq/weir/storage/clickhouse"
	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
	"github.com/weirhq/weir/storage/journal"
)

// node is a node of a cluster, whose files are harmed. Its organisation is its own.
type node struct {
	*journal.Journal
	dir, org string
	options  clickhouse.Options
	logs     *observer.ObservedLogs
	words    []string             // what was said of the harm
	bodies   map[uuid.UUID]string // of all calls
}

// open opens the journal of the node, in front of the shared server, or of none if it is out of reach.
func (n *node) open(t *testing.T, reached bool) bool {
	t.Helper()
	o := n.options
	if !reached {
		o.Addr = []string{"127.0.0.1:1"}
	}
	core, logs := observer.New(zapcore.WarnLevel)
	n.logs = logs
	var err error
	n.Journal, err = journal.Open(t.Context(), backend.New(backend.Config{Options: o}), journal.Options{Dir: n.dir, SegmentBytes: 8 << 10, Logger: zap.New(core)})
	if err == nil && reached {
		err = n.Connected(t.Context())
	}
	if err != nil {
		n.words = append(n.words, err.Error())
	}
	return n.Journal != nil
}

// close ends the process of the node, and keeps what it has said.
func (n *node) close() {
	i := n.Integrity()
	for _, l := range i.Losses {
		n.words = append(n.words, fmt.Sprintf("lost: %+v", l))
	}
	for _, f := range i.Damage {
		n.words = append(n.words, fmt.Sprintf("damage: %+v", f))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = n.Journal.Close(ctx)
	for _, l := range n.logs.All() {
		n.words = append(n.words, "log: "+l.Message+fmt.Sprint(l.ContextMap()))
	}
}

func (n *node) call(t *testing.T) {
	t.Helper()
	r := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: n.org, CreatedAt: storage.Millis(time.Now())}
	n.Begin(r)
	n.bodies[r.ID] = "body " + r.ID.String() + strings.Repeat(" x", 500)
	content := &storage.Content{Request: storage.Body{Type: "text/plain", Data: []byte(n.bodies[r.ID])}}
	if err := n.Append(r, storagetest.Kept(r, content)); err != nil {
		t.Fatal(err)
	}
	n.Abandon(r)
}

// missing lists the calls that have no record or no body, or others.
func (n *node) missing(t *testing.T) (all []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := n.Flush(ctx); err != nil {
		n.words = append(n.words, err.Error())
	}
	page, err := n.Backend().Requests(ctx, &storage.RequestQuery{Org: n.org, Filter: storage.All{}, Limit: 1000})
	if err != nil {
		n.words = append(n.words, err.Error())
	}
	left := make(map[uuid.UUID]bool)
	for id := range n.bodies {
		left[id] = true
	}
	for _, r := range page {
		c, err := n.Contents().Content(ctx, r)
		if err != nil {
			n.words = append(n.words, err.Error())
		}
		if !left[r.ID] {
			all = append(all, "twice "+r.ID.String())
		}
		if delete(left, r.ID); c == nil || string(c.Request.Data) != n.bodies[r.ID] {
			all = append(all, "the body of "+r.ID.String())
		}
	}
	for id := range left {
		all = append(all, id.String())
	}
	if i := n.Integrity(); i.Seen != int64(len(n.bodies)) || i.Unaccounted() != 0 {
		all = append(all, fmt.Sprintf("the reconciliation is %+v", i))
	}
	return all
}

func readFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) { // a temporary file
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = text
	}
	return all
}

// Whatever befalls a file of a node that was stopped or killed, or that is open, while ClickHouse lacks
// its last records: nothing is lost without a word, neither of the node nor of Check.
func TestNoDamageOfANodeIsSilent(t *testing.T) {
	cases := 3
	if *full {
		cases = 100
	}
	options := *clickhousetest.Options(t)
	for number := range cases {
		rng := rand.New(rand.NewPCG(11, uint64(number)))
		state := []string{"stopped", "killed", "open"}[number%3]
		harm := filedamage.Kinds[rng.IntN(len(filedamage.Kinds))]
		t.Run(fmt.Sprintf("%d %s %s", number, state, harm.Name), func(t *testing.T) {
			t.Parallel()
			n := &node{options: options, dir: t.TempDir(), org: uuid.NewString(), bodies: make(map[uuid.UUID]string)}
			n.open(t, true)
			for range 12 {
				n.call(t)
			}
			if err := n.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			middle := readFiles(t, n.dir)
			n.close()
			n.open(t, false)
			for range 8 {
				n.call(t)
			}
			before, files := readFiles(t, n.dir), readFiles(t, n.dir)
			for string(before["checkpoint"]) == string(files["checkpoint"]) { // it says once a second how far files reach
				time.Sleep(10 * time.Millisecond)
				files = readFiles(t, n.dir)
			}
			if state != "open" {
				n.close()
			}
			if state == "killed" {
				n.dir = t.TempDir()
				for name, text := range files {
					if err := os.WriteFile(filepath.Join(n.dir, name), text, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			files = readFiles(t, n.dir)
			var names []string
			for name, text := range files {
				if len(text) > 0 && name != "lock" {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			name := names[rng.IntN(len(names))]
			t.Log(name)
			n.words = nil // that ClickHouse is out of reach
			if err := harm.Do(rng, filepath.Join(n.dir, name), files[name], middle[name]); err != nil {
				t.Fatal(err)
			}
			if state == "open" {
				n.call(t)
				n.close()
				n.words = nil
			}
			problems := []string{}
			report, err := journal.Check(t.Context(), n.dir, nil)
			if err != nil {
				problems = append(problems, err.Error())
			} else {
				problems = append(problems, report.Problems...)
				if lost := report.Integrity.InFlight; lost > 0 {
					problems = append(problems, fmt.Sprintf("%d were in flight", lost))
				}
				for _, l := range report.Integrity.Losses {
					problems = append(problems, fmt.Sprint(l))
				}
				for _, d := range report.Integrity.Damage {
					problems = append(problems, fmt.Sprint(d))
				}
			}
			var missing []string
			if n.open(t, true) {
				missing = n.missing(t)
				n.close()
			}
			if len(missing) > 0 && len(n.words) == 0 {
				t.Errorf("the node says nothing, and lacks %q", missing)
			}
			if len(missing) > 0 && len(problems) == 0 {
				t.Errorf("Check says nothing, and the node lacks %q; it says %q", missing, n.words)
			}
		})
	}
}
