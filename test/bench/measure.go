//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"time"
)

// cell is one measurement: a target in a case in a round.
type cell struct {
	Case   string `json:"case"`
	Target string `json:"target"`
	Round  int    `json:"round"`

	Calls   int    `json:"calls"`
	Failed  int    `json:"failed"`
	Failure string `json:"failure,omitempty"`

	CallsPerSecond float64 `json:"calls_per_second"`
	P50            float64 `json:"p50_ms,omitempty"`
	P99            float64 `json:"p99_ms,omitempty"`
	FirstP50       float64 `json:"first_byte_p50_ms,omitempty"`
	FirstP99       float64 `json:"first_byte_p99_ms,omitempty"`

	Gaps   *gaps   `json:"gaps,omitempty"`
	Server *server `json:"server,omitempty"`

	// OthersPercent is how much of the machine other processes used.
	OthersPercent float64 `json:"others_percent"`
}

// gaps are the times from one chunk of a stream to the next.
type gaps struct {
	P99         float64 `json:"p99_ms,omitempty"`
	Max         float64 `json:"max_ms"`
	LatePercent float64 `json:"late_percent"`
}

// server is what a target used.
type server struct {
	CPU float64 `json:"cpu_us_per_call"`
	// IdleMB and PeakMB are without the pages of files: how much of its own binary a
	// process has in memory depends on how the kernel has read the file.
	IdleMB    float64 `json:"idle_mb"`
	PeakMB    float64 `json:"peak_mb"`
	ColdStart float64 `json:"cold_start_s"`
	// Handshakes is how many connections over TLS the load needed beyond those of the warm-up.
	Handshakes int64 `json:"handshakes"`
	// Written and Kept are bytes on the disk for each byte of a request.
	Written float64 `json:"disk_written_per_byte"`
	Kept    float64 `json:"disk_kept_per_byte"`
}

// measure starts a target, puts it under the load of a case, and stops it.
func (b *bench) measure(ctx context.Context, t *target, c *benchCase) (*cell, error) {
	p, err := b.newVariables(t)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(p["DIR"])
	calls := newCaller(t, p.expand(t.url(c.traffic)), p)
	defer calls.close()
	if c.traffic.cached {
		calls.header["Service-Cache-Enabled"] = []string{"true"}
	}

	result := &cell{Case: c.name, Target: t.Name}
	if len(t.Command) == 0 {
		c.warm(ctx, calls, b.warmUp)
		b.observe(ctx, result, nil, calls, t, c)
		return result, ctx.Err()
	}

	began := time.Now()
	s, err := start(t, p)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := s.await(ctx, calls, c.ping); err != nil {
		return nil, err
	}
	cold := time.Since(began)
	idle := s.memory(resident)
	c.warm(ctx, calls, b.warmUp)
	if err := b.finish(ctx, s, calls, c); err != nil { // what the warm-up left to do is not the load's
		return nil, err
	}

	handshakes := b.provider.handshakes.Load()
	before, written, kept := s.processor(), s.written(), sizeOf(p["DIR"])
	sent := b.observe(ctx, result, s, calls, t, c)
	handshakes = b.provider.handshakes.Load() - handshakes
	if err := b.finish(ctx, s, calls, c); err != nil {
		return nil, err
	}
	result.Server = &server{
		CPU:       float64((s.processor() - before).Microseconds()) / float64(result.Calls),
		IdleMB:    idle,
		PeakMB:    s.memory(highest),
		ColdStart: cold.Seconds(), Handshakes: handshakes,
		Written: float64(s.written()-written) / float64(sent),
		Kept:    float64(sizeOf(p["DIR"])-kept) / float64(sent),
	}
	return result, ctx.Err()
}

// finish waits until a target has done what it has put off.
func (b *bench) finish(ctx context.Context, s *process, calls *caller, c *benchCase) error {
	time.Sleep(b.settle)
	if err := s.await(ctx, calls, c.ping); err != nil {
		return err
	}
	return s.quiet()
}

// warm lets connections be made and pools be filled. Streams that take their
// time are not worth the wait.
func (c *benchCase) warm(ctx context.Context, calls *caller, duration time.Duration) {
	if c.traffic.gap == 0 {
		calls.run(ctx, load{clients: max(1, c.load.clients), duration: duration}, c.pool)
	}
}

// observe runs the load of a case, and enters what the clients saw. There is no
// process where the provider itself is called. It returns how many bytes were sent.
func (b *bench) observe(ctx context.Context, result *cell, s *process, calls *caller, t *target, c *benchCase) int64 {
	othersTime := func() time.Duration {
		ours := processorTime(os.Getpid())
		if s != nil {
			ours += s.processor()
		}
		return machineTime() - ours
	}
	l := c.load
	if l.duration == 0 {
		l.duration = b.duration
	}

	altered, busy := b.provider.altered.Load(), othersTime()
	seen := calls.run(ctx, l, c.pool)
	if altered = b.provider.altered.Load() - altered; altered > 0 && !t.Rewrites {
		seen.failed += int(altered)
		seen.failure = fmt.Errorf("%d requests are not the client's", altered)
	}

	result.OthersPercent = 100 * float64(othersTime()-busy) / float64(seen.elapsed) / float64(runtime.NumCPU())
	result.Calls, result.Failed = seen.calls, seen.failed
	if seen.failure != nil {
		result.Failure = seen.failure.Error()
	}
	result.CallsPerSecond = float64(len(seen.total)) / seen.elapsed.Seconds()
	slices.Sort(seen.total)
	slices.Sort(seen.first)
	slices.Sort(seen.gaps)
	result.P50, result.P99 = quantile(seen.total, 0.50), quantile(seen.total, 0.99)
	result.FirstP50, result.FirstP99 = quantile(seen.first, 0.50), quantile(seen.first, 0.99)
	if c.traffic.events > 0 {
		result.Gaps = &gaps{P99: quantile(seen.gaps, 0.99), Max: quantile(seen.gaps, 1)}
		if c.traffic.gap > 0 {
			result.Gaps.LatePercent = latePercent(seen.gaps, c.traffic.gap)
		}
	}
	return seen.sent
}

// quantile is in milliseconds, of sorted durations: the smallest one that a
// share q of all do not exceed.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := max(0, int(math.Ceil(q*float64(len(sorted))))-1)
	return float64(sorted[i]) / float64(time.Millisecond)
}

// latePercent is the percentage of the gaps that are half as long again as the
// provider's.
func latePercent(sorted []time.Duration, gap time.Duration) float64 {
	if len(sorted) == 0 {
		return 0
	}
	on, _ := slices.BinarySearchFunc(sorted, gap*3/2, cmp.Compare[time.Duration])
	return 100 * float64(len(sorted)-on) / float64(len(sorted))
}
