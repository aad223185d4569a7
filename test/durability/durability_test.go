//go:build linux

// Package durability tests what Weir promises of records, from outside: it starts
// processes of Weir, puts them between clients and a provider of its own, kills them,
// reloads them, fills their disk, and looks at what is left.
//
// `go test ./test/durability` takes a few rounds of everything; `go test ./test/durability -full`
// takes as many as the promises name.
package durability

import (
	"flag"
	"os"
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

// asWeir tells the test binary to be a Weir, which has the remote backend, too.
const asWeir = "WEIR_DURABILITY"

// program is the path of the weir that is tested.
var program = flag.String("weir", "/proc/self/exe", "the binary to test; by default the test's own")

func TestMain(m *testing.M) {
	if os.Getenv(asWeir) != "" {
		caddycmd.Main()
		return
	}
	flag.Parse()
	if testing.Short() {
		return
	}
	parallel := flag.Lookup("test.parallel")
	if !*full && parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("4") // a number: tests wait for processes half of their time
	}
	os.Exit(m.Run())
}
