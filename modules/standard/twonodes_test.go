package standard

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/testkit/storagetest/remote"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	controlfile "github.com/weirhq/weir/storage/control/embedded"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
	"github.com/weirhq/weir/storage/shared"
)

func init() {
	caddy.RegisterModule(new(nodeStorage))
	caddy.RegisterModule(new(nodeShared))
}

// nodeStorage is the journal of a node, whose records are on a remote.Server.
type nodeStorage struct {
	Server  string `json:"server"`
	Journal string `json:"journal"`
}

func (*nodeStorage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.storage.remote", New: func() caddy.Module { return new(nodeStorage) }}
}

func (s *nodeStorage) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&s.Server, &s.Journal) {
		return d.ArgErr()
	}
	return nil
}

func (s *nodeStorage) Key() string              { return "remote:" + s.Journal }
func (s *nodeStorage) Dir() string              { return s.Journal }
func (s *nodeStorage) Backend() storage.Backend { return remote.New(s.Server) }

// nodeShared shares the control objects of a folder.
type nodeShared struct {
	Folder string `json:"folder"`
}

func (*nodeShared) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.shared.folder", New: func() caddy.Module { return new(nodeShared) }}
}

func (s *nodeShared) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&s.Folder) {
		return d.ArgErr()
	}
	return nil
}

func (s *nodeShared) Key() string { return s.Folder }

func (s *nodeShared) Open(_, dir string, logger *zap.Logger) (shared.State, error) {
	ledger, err := embedded.Open(dir, nil, logger)
	if err != nil {
		return nil, err
	}
	log, err := controlfile.Open(s.Folder, nil, logger)
	return &nodeState{ledger: ledger, control: log}, err
}

type nodeState struct {
	ledger   credits.Ledger
	control  control.Log
	memory   shared.LocalMemory
	breakers shared.LocalBreakers
}

func (s *nodeState) Credits() credits.Ledger   { return s.ledger }
func (s *nodeState) Memory() shared.Memory     { return &s.memory }
func (s *nodeState) Breakers() shared.Breakers { return &s.breakers }
func (s *nodeState) Affinity() shared.Affinity { return nil }
func (s *nodeState) Runs() shared.Runs         { return nil }
func (s *nodeState) Control() control.Log      { return s.control }
func (s *nodeState) Close(ctx context.Context) error {
	return errors.Join(s.control.Close(ctx), s.ledger.Close(ctx))
}

// twoNodesConfig is a node that serves, and the store of another node with the same records.
const twoNodesConfig = `{
	admin off
	persist_config off
	auto_https off
	llm {
		secret two-nodes
		store remote %[1]s/server %[1]s/first {
			shared folder %[1]s
		}
		store second remote %[1]s/server %[1]s/second {
			shared folder %[1]s
		}
		provider anthropic {
			base_url %[2]s
			api_key platform-anthropic
		}
		org rich {
			key weir-rich
		}
	}
}
http://127.0.0.1:%[3]s {
	bind 127.0.0.1
	handle_path /own/* {
		llm_log anthropic {
			require_key
			org rich
		}
		reverse_proxy %[2]s
	}
	llm_query
}`

// Of two nodes with the same records, one asks for a session. When it dies, the other one asks from the end
// of its lease on, and the first one asks no more when it is back.
func TestOneNodeAsksForASession(t *testing.T) {
	k := newKeeper(t)
	s := &site{t: t, dir: t.TempDir()}
	server := remote.NewServer(filepath.Join(s.dir, "server"), remote.Faults{})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	s.load(twoNodesConfig, k.URL)
	s.ask("POST", "/own/v1/sessions", `{"agent":"agent_1","environment_id":"env_1"}`, "X-Api-Key", "theirs", "Service-Auth", "Bearer weir-rich")
	s.flush()
	node := func(name string) (round func(time.Duration), die func()) {
		running, store, err := recording.NewSite(caddy.ActiveContext(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		poller := afterStart(store)
		round = func(after time.Duration) {
			if err := poller.Round(t.Context(), running, time.Now().Add(after)); err != nil {
				t.Error(err)
			}
		}
		return round, func() { // the time of its lease goes by without a round
			log, err := store.Control()
			if err != nil {
				t.Fatal(err)
			}
			j, err := store.Journal()
			if err != nil {
				t.Fatal(err)
			}
			last := &control.Organisation{Log: log, Name: "rich"}
			if leased, err := last.Lease(t.Context(), "batches", j.Identity().String(), -time.Second); !leased || err != nil {
				t.Fatal(leased, err)
			}
		}
	}
	first, dieFirst := node("")
	second, _ := node("second")
	question := []string{"/v1/sessions/sess_1 platform-anthropic"}
	step := func(when string, want []string, rounds ...func()) {
		t.Helper()
		var wg sync.WaitGroup
		for _, round := range rounds {
			wg.Go(round)
		}
		wg.Wait()
		s.flush()
		if asked := k.questions(); !slices.Equal(asked, want) {
			t.Errorf("%s, the provider was asked for %q, want %q", when, asked, want)
		}
	}
	at := func(round func(time.Duration), after time.Duration) func() { return func() { round(after) } }
	step("by the first node", question, at(first, 2*time.Hour))
	step("by both at once", question, at(first, 4*time.Hour), at(second, 4*time.Hour))
	step("by the second node while the lease lasts", nil, at(second, 8*time.Hour))
	dieFirst()
	step("after the end of the lease", question, at(second, 8*time.Hour))
	step("by the first node when it is back", nil, at(first, 16*time.Hour))
	step("by both once more", question, at(first, 20*time.Hour), at(second, 20*time.Hour))
}
