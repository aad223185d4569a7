//go:build linux

package durability

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/weirhq/weir/internal/testkit/storagetest/remote"
	_ "github.com/weirhq/weir/modules/standard"
	"github.com/weirhq/weir/storage"
)

func init() {
	caddy.RegisterModule(remoteStorage{})
}

// remoteStorage keeps records in a remote.Server.
type remoteStorage struct {
	Socket  string `json:"socket"`
	Journal string `json:"journal"`
}

func (remoteStorage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.storage.remote", New: func() caddy.Module { return new(remoteStorage) }}
}

func (s *remoteStorage) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&s.Socket, &s.Journal) {
		return d.ArgErr()
	}
	return nil
}

func (s *remoteStorage) Key() string { return "remote:" + s.Socket }

func (s *remoteStorage) Dir() string { return s.Journal }

func (s *remoteStorage) Backend() storage.Backend { return remote.New(s.Socket) }

// TestRemote kills nodes and the store that they record into, again and again. The
// store is slow, has no transaction, and loses every third acknowledgement. The
// record of every answer must be there afterwards, once, and whole.
func TestRemote(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "weir-remote-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const visible = 20 * time.Millisecond
	server := remote.NewServer(filepath.Join(dir, "socket"), remote.Faults{
		Latency: 5 * time.Millisecond, Gap: 5 * time.Millisecond, Visible: visible,
		Refused: 0.3, Torn: 0.2, Repeated: 0.2, Unacknowledged: 0.3,
	})
	t.Cleanup(server.Stop)
	p := newProvider(t)
	began := time.Now()
	nodes := []*weir{newWeir(t, p), newWeir(t, p)}
	configs := make([]config, len(nodes))
	for i, w := range nodes {
		w.program = "/proc/self/exe" // which has the backend
		configs[i].backend = "remote " + filepath.Join(dir, "socket") + " " + filepath.Join(w.dir, "data", "journal")
		configs[i].store = "sync"
		w.launch(configs[i])
		w.await("the process takes calls while the store is down", w.listens)
	}
	ended := map[*call]string{}
	for c, id := range succeed(t, p, nodes[0], 40, 0) {
		ended[c] = id
	}
	for round := range killings() {
		w := nodes[round%len(nodes)]
		if w.process == nil {
			w.launch(configs[round%len(nodes)])
			w.await("the process takes calls", w.listens)
		}
		server.Stop()
		up := make(chan error)
		go func() { // while the node is under load, or after it was killed
			time.Sleep(lifetime() / 2)
			up <- server.Start()
		}()
		for c, id := range load(t, p, w, lifetime()) {
			ended[c] = id
		}
		if err := <-up; err != nil {
			t.Fatal(err)
		}
		if err := server.Violation(); err != nil {
			t.Fatal(err)
		}
	}
	server.Stop()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	for i, w := range nodes {
		w.kill()
		w.start(configs[i])
		w.flush()
	}
	time.Sleep(visible)
	records := nodes[0].records(began)
	for c, id := range ended {
		c.check(t, records[c.name()], id)
	}
	var recorded, lost int64
	for _, w := range nodes {
		b := w.settled()
		recorded += b.Recorded
		lost += b.Lost
		if interrupted := b.lost()["interrupted"]; interrupted != b.Lost {
			t.Errorf("exchanges are lost that no kill interrupted: %+v", b)
		}
	}
	if recorded != int64(len(records)) {
		t.Errorf("%d exchanges count as recorded, and there are %d records", recorded, len(records))
	}
	if err := server.Violation(); err != nil {
		t.Error(err)
	}
	t.Logf("%d answers ended, %d records, %d exchanges interrupted", len(ended), len(records), lost)
}
