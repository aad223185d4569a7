package remote_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/internal/testkit/storagetest/remote"
	"github.com/weirhq/weir/storage"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of queries in a small heap
	m.Run()
}

var declared = storagetest.Relaxed{
	NoPositions: true, Partial: true, Transient: true, KeepsAnnotations: true,
	Visible: 5 * time.Millisecond, PruneGranularity: 24 * time.Hour,
}

// unstable is what a backend of these guarantees may do at its worst.
var unstable = remote.Faults{
	Latency: time.Millisecond, Visible: declared.Visible, PruneGranularity: declared.PruneGranularity,
	Refused: 0.5, Torn: 0.2, Repeated: 0.3, Unacknowledged: 0.3,
}

func open(f remote.Faults) func(t *testing.T) storage.Backend {
	return func(t *testing.T) storage.Backend {
		dir, err := os.MkdirTemp("", "weir-remote-") // the path of a socket is short
		if err != nil {
			t.Fatal(err)
		}
		server := remote.NewServer(filepath.Join(dir, "socket"), f)
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			server.Stop()
			os.RemoveAll(dir)
		})
		return remote.New(filepath.Join(dir, "socket"))
	}
}

func TestContract(t *testing.T) { storagetest.Run(t, open(unstable), declared) }

func TestAnalytics(t *testing.T) { storagetest.RunAnalytics(t, open(unstable), declared) }

// relaxation is a guarantee that a backend does not give.
type relaxation struct {
	fault   remote.Faults
	conceal func(*storagetest.Relaxed)
	test    string // that must fail when it is not declared
}

var relaxations = map[string]relaxation{
	"NoPositions": {test: "position", conceal: func(r *storagetest.Relaxed) { r.NoPositions = false }},
	"Partial": {
		test: "reads_during_writes", fault: remote.Faults{Gap: 20 * time.Millisecond},
		conceal: func(r *storagetest.Relaxed) { r.Partial = false },
	},
	"Visible": {
		test: "reopen", fault: remote.Faults{Visible: 100 * time.Millisecond},
		conceal: func(r *storagetest.Relaxed) { r.Visible = 0 },
	},
	"PruneGranularity": {
		test: "prune", fault: remote.Faults{PruneGranularity: 24 * time.Hour},
		conceal: func(r *storagetest.Relaxed) { r.PruneGranularity = 0 },
	},
	"KeepsAnnotations": {test: "dropped_annotations", conceal: func(r *storagetest.Relaxed) { r.KeepsAnnotations = false }},
	"Transient": {
		test: "idempotent_write", fault: remote.Faults{Unacknowledged: 0.5},
		conceal: func(r *storagetest.Relaxed) { r.Transient = false },
	},
}

var (
	relax   = flag.String("relax", "", "the guarantee that the backend of TestRelaxation does not give")
	conceal = flag.Bool("conceal", false, "TestRelaxation does not declare it")
)

// TestRelaxation passes or fails in the processes that TestUndeclared starts.
func TestRelaxation(t *testing.T) {
	r, ok := relaxations[*relax]
	if !ok {
		t.Skip("it is TestUndeclared that runs it")
	}
	relaxed := declared
	relaxed.Visible = max(relaxed.Visible, r.fault.Visible)
	if *conceal {
		r.conceal(&relaxed)
		r.fault.Visible *= 600 // not before the test ends, on however slow a machine
	}
	storagetest.Run(t, open(r.fault), relaxed)
}

// A backend that relaxes more than it declares fails, and passes when it declares it.
func TestUndeclared(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	for name, r := range relaxations {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for processes
			run := func(args ...string) (string, error) {
				args = append(args, "-test.run", "^TestRelaxation$/^"+r.test+"$", "-test.v", "-relax", name)
				output, err := exec.Command(self, args...).CombinedOutput()
				return string(output), err
			}
			if output, err := run(); err != nil || !strings.Contains(output, "--- PASS: TestRelaxation/"+r.test) {
				t.Errorf("declared: %v\n%.2000s", err, output)
			}
			if output, err := run("-conceal"); err == nil || !strings.Contains(output, "--- FAIL: TestRelaxation/"+r.test) {
				t.Errorf("not declared: %v\n%.2000s", err, output)
			}
		})
	}
}
