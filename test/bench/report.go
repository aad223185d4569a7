//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
)

// round is what was measured of the targets in one case and one round.
type round map[string]*cell

// rounds returns the rounds of a case in which none of these targets had a failed call: an
// error is shown, and never part of an average.
func rounds(cells []*cell, name string, targets ...string) []round {
	var all []round
	for _, c := range cells {
		if c.Case != name {
			continue
		}
		for len(all) < c.Round {
			all = append(all, round{})
		}
		if c.Failed == 0 {
			all[c.Round-1][c.Target] = c
		}
	}
	return slices.DeleteFunc(all, func(r round) bool {
		return slices.ContainsFunc(targets, func(t string) bool { return r[t] == nil })
	})
}

// figure is a median over the rounds, and the range.
type figure struct{ median, least, greatest float64 }

// figureOf returns the figure of the known values. A value of a target without a process of its
// own is NaN, and is left out.
func figureOf(rounds []round, value func(round) float64) (f figure, known bool) {
	var values []float64
	for _, r := range rounds {
		if v := value(r); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return f, false
	}
	slices.Sort(values)
	n := len(values)
	return figure{(values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]}, true
}

// measure returns a figure of a cell, NaN if it is unknown.
type measure func(*cell) float64

func cpu(c *cell) float64     { return ofPart(c.Server, func(s *server) float64 { return s.CPU }) }
func idle(c *cell) float64    { return ofPart(c.Server, func(s *server) float64 { return s.IdleMB }) }
func peak(c *cell) float64    { return ofPart(c.Server, func(s *server) float64 { return s.PeakMB }) }
func growth(c *cell) float64  { return peak(c) - idle(c) }
func written(c *cell) float64 { return ofPart(c.Server, func(s *server) float64 { return s.Written }) }
func kept(c *cell) float64    { return ofPart(c.Server, func(s *server) float64 { return s.Kept }) }
func coldStart(c *cell) float64 {
	return ofPart(c.Server, func(s *server) float64 { return s.ColdStart })
}
func handshakes(c *cell) float64 {
	return ofPart(c.Server, func(s *server) float64 { return float64(s.Handshakes) })
}
func throughput(c *cell) float64 { return c.CallsPerSecond }
func p50(c *cell) float64        { return c.P50 }
func p99(c *cell) float64        { return c.P99 }
func firstByte(c *cell) float64  { return ofPart(c.Gaps, func(*gaps) float64 { return c.FirstP50 }) }
func gapP99(c *cell) float64     { return ofPart(c.Gaps, func(g *gaps) float64 { return g.P99 }) }
func late(c *cell) float64       { return ofPart(c.Gaps, func(g *gaps) float64 { return g.LatePercent }) }
func others(c *cell) float64     { return c.OthersPercent }

// ofPart returns a figure of a part of a cell, NaN if the cell does not have the part.
func ofPart[T any](part *T, value func(*T) float64) float64 {
	if part == nil {
		return math.NaN()
	}
	return value(part)
}

// comparison compares a target with the other targets of its round.
type comparison func(r round, target string) float64

func value(m measure) comparison {
	return func(r round, target string) float64 { return m(r[target]) }
}

func ratio(m measure, to string) comparison {
	return func(r round, target string) float64 { return m(r[target]) / m(r[to]) }
}

func difference(m measure, to string) comparison {
	return func(r round, target string) float64 { return m(r[target]) - m(r[to]) }
}

// addedRatio is what a target adds to a direct call, as a ratio to what plain
// Caddy adds.
func addedRatio(m measure) comparison {
	added := difference(m, direct)
	return func(r round, target string) float64 { return added(r, target) / added(r, plain) }
}

// columns are the columns of the long table.
var columns = []struct {
	title, format string
	ranged        bool // the range over the rounds is shown
	of            comparison
}{
	{"CPU µs", "%.0f", false, value(cpu)},
	{"× caddy", "%.2f", true, ratio(cpu, plain)},
	{"calls/s", "%.0f", false, value(throughput)},
	{"× caddy", "%.2f", false, ratio(throughput, plain)},
	{"× direct", "%.2f", false, ratio(throughput, direct)},
	{"p50 ms", "%.2f", false, value(p50)},
	{"added", "%+.2f", true, difference(p50, direct)},
	{"p99 ms", "%.2f", false, value(p99)},
	{"added", "%+.2f", true, difference(p99, direct)},
	{"first byte p50 ms", "%.2f", false, value(firstByte)},
	{"gap p99 ms", "%.1f", false, value(gapP99)},
	{"late %", "%.2f", false, value(late)},
	{"peak MB", "%.0f", false, value(peak)},
	{"× caddy", "%.2f", false, ratio(peak, plain)},
	{"handshakes", "%.0f", false, value(handshakes)},
	{"written B/B", "%.2f", false, value(written)},
	{"kept B/B", "%.2f", false, value(kept)},
	{"others %", "%.0f", false, value(others)},
}

// goal is the most that a figure may be.
type goal struct {
	what, benchCase, target string
	of                      comparison
	limit                   float64
	beside                  []string // the targets that the figure is compared with
}

// goals are what Weir sets itself.
var goals = slices.Concat(
	cpuGoals("weir", plain, 1.30, "small-1", "small-16", "same-1", "same-16", "small-256", "conversation-16"),
	cpuGoals("weir", plain, 2.00, "large-16"),
	cpuGoals("weir", plain, 1.05, "stream-16"),
	cpuGoals("weir", plain, 1.10, "streams-2000"),
	cpuGoals("weir-metrics", plain, 1.15, "small-1", "small-16"),
	cpuGoals("gateway", "weir", 1.10, "small-1", "small-16", "same-16", "small-256", "large-16", "conversation-16", "stream-16"),
	cpuGoals("gateway-anthropic", plain, 1.10, "responses-16", "chat-16"),
	cpuGoals("gateway-gemini", plain, 1.10, "responses-16", "chat-16", "messages-16"),
	cpuGoals("weir", plain, 1, "cached-1", "cached-16"),
	cpuGoals("gateway", plain, 1, "cached-1", "cached-16"),
	[]goal{
		{"added p50 latency of a hit, ms", "cached-1", "weir", difference(p50, direct), 0.3, []string{direct}},
		{"added p50 latency of a hit, ms", "cached-1", "gateway", difference(p50, direct), 0.3, []string{direct}},
		{"added p99 latency, × caddy", "small-256", "weir", addedRatio(p99), 1.5, []string{plain, direct}},
		{"added p50 latency, × caddy", "small-1", "weir", addedRatio(p50), 1.15, []string{plain, direct}},
		{"late events, %", "streams-2000", "weir", value(late), 0, nil},
		{"memory above idle, × caddy", "streams-2000", "weir", ratio(growth, plain), 1.2, []string{plain}},
		{"peak memory, MB above caddy", "small-16", "weir", difference(peak, plain), 15, []string{plain}},
		{"idle memory, MB above caddy", "small-1", "weir", difference(idle, plain), 25, []string{plain}},
		{"cold start to the first answer, s", "small-1", "weir", value(coldStart), 0.15, nil},
	},
)

// cpuGoals bounds the processor time of a call at a target, as a ratio to another target.
func cpuGoals(target, to string, limit float64, cases ...string) (all []goal) {
	for _, c := range cases {
		all = append(all, goal{"CPU, × " + to, c, target, ratio(cpu, to), limit, []string{to}})
	}
	return all
}

func (b *bench) report(w io.Writer, cells []*cell) {
	fmt.Fprintf(w, "%d rounds of %v on %d processors, of which load and provider may use %d.\n\n",
		b.rounds, b.duration, runtime.NumCPU(), runtime.GOMAXPROCS(0))
	b.reportAll(w, cells)
	fmt.Fprintln(w)
	b.reportGoals(w, cells)
}

// reportAll prints every target in every case.
func (b *bench) reportAll(w io.Writer, cells []*cell) {
	header, rule := "| case | target |", "| --- | --- |"
	for _, column := range columns {
		header += " " + column.title + " |"
		rule += " --: |"
	}
	fmt.Fprintf(w, "%s failed |\n%s --- |\n", header, rule)
	for i := range b.cases {
		for j := range b.targets {
			name, target := b.cases[i].name, b.targets[j].Name
			if b.targets[j].url(b.cases[i].traffic) == "" {
				continue
			}
			line := "| " + name + " | " + target + " |"
			all := rounds(cells, name, target, plain, direct)
			for _, column := range columns {
				f, known := figureOf(all, func(r round) float64 { return column.of(r, target) })
				line += " " + f.text(column.format, known, column.ranged && len(all) > 1) + " |"
			}
			fmt.Fprintf(w, "%s %s |\n", line, failures(cells, name, target))
		}
	}
}

// reportGoals prints the table that docs/performance.md closes with.
func (b *bench) reportGoals(w io.Writer, cells []*cell) {
	fmt.Fprint(w, "| measure | case | target | figure | goal | |\n| --- | --- | --- | --: | --: | --- |\n")
	for _, g := range goals {
		all := rounds(cells, g.benchCase, append([]string{g.target}, g.beside...)...)
		f, known := figureOf(all, func(r round) float64 { return g.of(r, g.target) })
		if !known {
			continue
		}
		verdict := "met"
		if f.median > g.limit {
			verdict = "missed"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %g | %s |\n", g.what, g.benchCase, g.target, f.text("%.2f", true, len(all) > 1), g.limit, verdict)
	}
}

func (f figure) text(format string, known, ranged bool) string {
	if !known {
		return ""
	}
	text := fmt.Sprintf(format, f.median)
	if ranged {
		text += fmt.Sprintf(" ("+format+"–"+format+")", f.least, f.greatest)
	}
	return text
}

// failures describes the calls that failed, over all rounds.
func failures(cells []*cell, name, target string) string {
	failed, calls, first := 0, 0, ""
	for _, c := range cells {
		if c.Case == name && c.Target == target {
			failed, calls = failed+c.Failed, calls+c.Calls
			first = cmp.Or(first, c.Failure)
		}
	}
	if failed == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d: %s", failed, calls, strings.Join(strings.Fields(first), " "))
}
