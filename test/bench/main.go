//go:build linux

// Command bench measures what Weir adds to plain Caddy: the processor time of a
// call, latency, and memory. It plays the provider and the clients, starts each
// target by itself, and prints ratios. docs/performance.md has the method.
//
//	go run ./test/bench          # in the root of the repository; up to ten minutes
//	go run ./test/bench -quick   # up to two
//	go run ./test/bench -against v0.1.0 -against 68adccf
//
// The last measures older versions in the same rounds, and fails if a call has become
// more than 5 % dearer.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// benchCase is a load with one kind of traffic.
type benchCase struct {
	name    string
	traffic traffic
	load    load // without a duration it takes -duration
	pool    []exchange
	ping    *exchange // the call that a target begins and ends with
}

var (
	small     = traffic{requestBytes: 2 << 10, answerBytes: 1500}
	same      = traffic{requestBytes: 2 << 10, answerBytes: 1500, repeats: true}
	cached    = traffic{requestBytes: 2 << 10, answerBytes: 1500, repeats: true, cached: true}
	tooled    = traffic{requestBytes: 8 << 10, answerBytes: 1500, tools: 20}
	refused   = traffic{requestBytes: 2 << 10, answerBytes: 200, refused: true}
	embedded  = traffic{requestBytes: 20 << 10, answerBytes: 20 << 10, inputs: 100}
	mixed     = traffic{requestBytes: 8 << 10, mixed: true}
	large     = traffic{requestBytes: 100 << 10, answerBytes: 1500, serials: true}
	turns     = traffic{agents: true}
	stream    = traffic{requestBytes: 2 << 10, events: 200}
	responded = traffic{requestBytes: 2 << 10, events: 200, streams: "responses"}
	chatted   = traffic{requestBytes: 2 << 10, events: 200, streams: "chat"}
	messaged  = traffic{requestBytes: 2 << 10, events: 200, streams: "messages"}
	paced     = traffic{requestBytes: 2 << 10, events: 25, gap: 200 * time.Millisecond}
)

var cases = []benchCase{
	{name: "small-1", traffic: small, load: load{clients: 1}},
	{name: "small-16", traffic: small, load: load{clients: 16}},
	{name: "small-256", traffic: small, load: load{clients: 256}},
	{name: "small-200/s", traffic: small, load: load{rate: 200}},
	{name: "same-1", traffic: same, load: load{clients: 1}},
	{name: "same-16", traffic: same, load: load{clients: 16}},
	{name: "cached-1", traffic: cached, load: load{clients: 1}},
	{name: "cached-16", traffic: cached, load: load{clients: 16}},
	{name: "tools-16", traffic: tooled, load: load{clients: 16}},
	{name: "errors-16", traffic: refused, load: load{clients: 16}},
	{name: "embeddings-16", traffic: embedded, load: load{clients: 16}},
	{name: "mixed-16", traffic: mixed, load: load{clients: 16}},
	// 1,000 agents that work on something else between their calls.
	{name: "agents-1000", traffic: turns, load: load{clients: 1000, pause: 2 * time.Second, duration: 4 * time.Second}},
	{name: "large-16", traffic: large, load: load{clients: 16}},
	{name: "conversation-16", traffic: turns, load: load{clients: 16}},
	{name: "stream-1", traffic: stream, load: load{clients: 1}},
	{name: "stream-16", traffic: stream, load: load{clients: 16}},
	{name: "stream-256", traffic: stream, load: load{clients: 256}},
	{name: "responses-16", traffic: responded, load: load{clients: 16}},
	{name: "chat-16", traffic: chatted, load: load{clients: 16}},
	{name: "messages-16", traffic: messaged, load: load{clients: 16}},
	// All 2,000 run at the same time for the last three of five seconds.
	{name: "streams-2000", traffic: paced, load: load{rate: 1000, duration: 2 * time.Second}},
}

// quickCases are the cases of -quick.
var quickCases = []string{"small-1", "small-16", "same-16", "large-16", "conversation-16", "stream-16", "responses-16"}

// bench is a run of the harness.
type bench struct {
	targetsFile string
	targets     []target
	cases       []benchCase
	rounds      int
	duration    time.Duration
	// warmUp is how long a target is under load before it is measured.
	warmUp time.Duration
	// settle is the time from the load to one last call, at which a target
	// begins what it does once a second, like closing a segment.
	settle time.Duration

	dir      string // for everything that the run writes
	weir     string // the binary
	provider *provider
}

func main() {
	var (
		b     = bench{warmUp: 300 * time.Millisecond, settle: 1100 * time.Millisecond}
		names string
		quick bool
		raw   bool
		older []string
	)
	flag.StringVar(&b.targetsFile, "targets", "test/bench/targets.json", "the `file` that describes the targets")
	flag.StringVar(&names, "cases", "", "the cases to run, with commas between; default: all ("+strings.Join(caseNames(), ", ")+")")
	flag.IntVar(&b.rounds, "rounds", 3, "how often each target is measured in each case")
	flag.DurationVar(&b.duration, "duration", 1200*time.Millisecond, "how long each load lasts")
	flag.BoolVar(&quick, "quick", false, "one short round of the main cases")
	flag.BoolVar(&raw, "json", false, "print every measurement as a line of JSON, and no table")
	flag.Func("against", "an older `version` to compare with: a commit or a binary; may be repeated", func(version string) error {
		older = append(older, version)
		return nil
	})
	flag.Parse()
	if quick {
		b.rounds, b.duration = 1, 500*time.Millisecond
		names = cmp.Or(names, strings.Join(quickCases, ","))
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.NumCPU()/2))
	}
	if err := b.main(ctx, names, older, raw); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) main(ctx context.Context, names string, older []string, raw bool) (err error) {
	if b.cases, err = choose(names); err != nil {
		return err
	}
	if b.targets, err = readTargets(b.targetsFile); err != nil {
		return err
	}
	for _, version := range older {
		if err := b.addOlder(ctx, version); err != nil {
			return err
		}
	}
	if b.dir, err = os.MkdirTemp("", "weir-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	b.weir = filepath.Join(b.dir, "weir")
	if err := build(ctx, ".", b.weir); err != nil {
		return err
	}
	if err := b.compose(); err != nil {
		return err
	}
	defer b.provider.close()

	encoder := json.NewEncoder(os.Stdout)
	cells, err := b.run(ctx, func(c *cell) error {
		if raw {
			return encoder.Encode(c)
		}
		fmt.Fprintf(os.Stderr, "round %d/%d %s %s: %d calls, %d failed\n", c.Round, b.rounds, c.Case, c.Target, c.Calls, c.Failed)
		return nil
	})
	if err != nil || raw {
		return err
	}
	b.report(os.Stdout, cells)
	if len(older) > 0 {
		fmt.Println()
		if dearer := b.reportOlder(os.Stdout, cells); len(dearer) > 0 {
			return fmt.Errorf("dearer by more than %g %%: %s", 100*tolerance, strings.Join(dearer, ", "))
		}
	}
	return nil
}

// build builds the Weir of a directory.
func build(ctx context.Context, dir, binary string) error {
	command := exec.CommandContext(ctx, "go", "build", "-o", binary, "./xcaddy/weir")
	command.Dir = dir
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("building Weir: %w", err)
	}
	return nil
}

func caseNames() (names []string) {
	for i := range cases {
		names = append(names, cases[i].name)
	}
	return names
}

func choose(names string) (chosen []benchCase, err error) {
	if names == "" {
		return slices.Clone(cases), nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.Index(caseNames(), name)
		if i < 0 {
			return nil, fmt.Errorf("there is no case %s; there are %s", name, strings.Join(caseNames(), ", "))
		}
		chosen = append(chosen, cases[i])
	}
	return chosen, nil
}

// compose writes the traffic of each case, and starts the provider that knows
// its answers.
func (b *bench) compose() error {
	all := compose(small, 0)
	pools := map[traffic][]exchange{small: all}
	for i := range b.cases {
		c := &b.cases[i]
		if pools[c.traffic] == nil {
			pools[c.traffic] = compose(c.traffic, len(all))
			all = append(all, pools[c.traffic]...)
		}
		c.pool = pools[c.traffic]
		c.ping = &pools[small][0]
		if c.traffic.streams != "" {
			c.ping = &c.pool[0]
		}
	}
	var err error
	b.provider, err = newProvider(all)
	return err
}

// run measures every target in every case, round by round, and each time
// another target first. An older Weir takes no part in what it cannot answer.
func (b *bench) run(ctx context.Context, done func(*cell) error) ([]*cell, error) {
	type part struct{ target, name string }
	leftOut := map[part]bool{}
	var cells []*cell
	for round := range b.rounds {
		for i := range b.cases {
			for j := range b.targets {
				t := &b.targets[(round+j)%len(b.targets)]
				p := part{t.Name, b.cases[i].name}
				if t.url(b.cases[i].traffic) == "" || leftOut[p] {
					continue
				}
				c, err := b.measure(ctx, t, &b.cases[i])
				if err != nil && t.older != "" && ctx.Err() == nil {
					fmt.Fprintf(os.Stderr, "without %s in %s: %v\n", t.Name, p.name, err)
					leftOut[p] = true
					continue
				}
				if err != nil {
					return nil, fmt.Errorf("%s in %s: %w", t.Name, p.name, err)
				}
				c.Round = round + 1
				cells = append(cells, c)
				if err := done(c); err != nil {
					return nil, err
				}
			}
		}
	}
	return cells, nil
}
