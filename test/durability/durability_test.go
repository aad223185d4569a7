//go:build linux

// Package durability tests what Weir promises of records, from outside: it builds
// the binary, puts it between clients and a provider of its own, kills it,
// reloads it, fills its disk, and looks at what is left.
//
// `go test ./test/durability` takes a few rounds of everything; `go test ./test/durability -full`
// takes as many as the promises name.
package durability

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

var full = flag.Bool("full", false, "take all rounds: 50 kills, 100 reloads under 50 streams")

var kills = flag.Int("kills", 0, "how often a process is killed; by default 4 times, 50 with -full")

// rounds is how often something is done.
func rounds(few, all int) int {
	if *full {
		return all
	}
	return few
}

// killings is how often a process is killed.
func killings() int {
	if *kills > 0 {
		return *kills
	}
	return rounds(4, 50)
}

// program is the path of the weir that is tested.
var program = flag.String("weir", "", "the binary to test; by default it is built")

func TestMain(m *testing.M) {
	if os.Getenv(asWeir) != "" {
		caddycmd.Main()
		return
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	flag.Parse()
	if testing.Short() {
		return 0
	}
	if *program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "weir-durability-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	*program = filepath.Join(dir, "weir")
	build := exec.Command("go", "build", "-o", *program, "../../xcaddy/weir")
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building weir: %v\n%s", err, output)
		return 1
	}
	return m.Run()
}
