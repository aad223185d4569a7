//go:build linux

package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

const benchmarkBatch = 256

// filled is a database with records, a tenth of which have scores, and the traffic
// that goes on from there; last is one of the newest records.
func filled(b *testing.B) (s *Backend, t *traffic, last *storage.Record) {
	ctx := context.Background()
	s = New(cmp.Or(*benchmarkDatabase, filepath.Join(b.TempDir(), "weir.db")))
	p, err := s.Open(ctx, hostOf(noContents{}))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	written := min(*benchmarkRecords, writtenRecords)
	t = newTraffic(written)
	for t.n < max(written, int(p.Ordinal)) {
		batch := t.batch(benchmarkBatch)
		last = batch.Records[0]
		if t.n <= int(p.Ordinal) {
			continue
		}
		for _, r := range batch.Records {
			if r.ID[15]%10 == 0 {
				batch.Annotations = append(batch.Annotations, &storage.Annotation{
					Org: r.Org, RequestID: r.ID, At: r.RespondedAt,
					Scores: map[string]float64{"accuracy": float64(r.ID[14]) / 255, "helpfulness": float64(r.ID[13] % 5)},
				})
			}
		}
		if err := s.Write(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	newest := func() *storage.Record {
		page, err := s.Requests(ctx, &storage.RequestQuery{Org: "default", Filter: storage.All{}, Limit: 1})
		if err != nil {
			b.Fatal(err)
		}
		return page[0]
	}
	copies := *benchmarkRecords / writtenRecords
	if begun := newTraffic(written).at; copies > 1 && newest().CreatedAt < begun+storage.Timestamp(benchmarkSpan.Milliseconds()/2) {
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		if err := multiply(s.path, copies); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Open(ctx, hostOf(noContents{})); err != nil {
			b.Fatal(err)
		}
	}
	if copies > 1 {
		last = newest()
		t.at = last.CreatedAt
	}
	file, err := os.Stat(s.path)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d bytes a record", file.Size()/int64(max(*benchmarkRecords, t.n)))
	return s, t, last
}

// Benchmark measures one database of -sqlite.records records; cpu-us counts the
// process's CPU time in microseconds.
func Benchmark(b *testing.B) {
	ctx := context.Background()
	s, t, last := filled(b)

	b.Run("write", func(b *testing.B) {
		b.StopTimer()
		var cpu time.Duration
		records := 0
		// Enough for some checkpoints, whatever N is.
		for records < max(b.N, 100*benchmarkBatch) {
			batch := t.batch(benchmarkBatch)
			records += benchmarkBatch
			start := cpuTime()
			b.StartTimer()
			if err := s.Write(ctx, batch); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			cpu += cpuTime() - start
		}
		b.ReportMetric(float64(cpu.Microseconds())/float64(records), "cpu-us/record")
	})
	b.Run("point", func(b *testing.B) {
		measure(b, func() error {
			_, err := s.Request(ctx, storage.RecordKey{Org: "default", ID: last.ID})
			return err
		})
	})
	for name, q := range benchmarkQueries(last) {
		b.Run(name, func(b *testing.B) {
			measure(b, func() error {
				_, err := s.Requests(ctx, q)
				return err
			})
		})
	}
	b.Run("prune", func(b *testing.B) {
		before := oldest(b, s)
		var longest time.Duration
		steps := 0
		measure(b, func() (err error) {
			before += storage.Timestamp(benchmarkSpan.Milliseconds() / 90)
			for more := true; more && err == nil; steps++ {
				start := cpuTime()
				more, err = s.Prune(ctx, before)
				longest = max(longest, cpuTime()-start)
			}
			return err
		})
		b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
		b.ReportMetric(float64(longest.Microseconds()), "longest-us")
	})
}

// oldest is when the first record was created.
func oldest(b *testing.B, s *Backend) storage.Timestamp {
	n, err := s.writer.c.integer(b.Context(), "SELECT min(n) FROM requests")
	if err != nil {
		b.Fatal(err)
	}
	return columnar.CreatedAt(n)
}

func benchmarkQueries(last *storage.Record) map[string]*storage.RequestQuery {
	newest := func(f storage.Filter) *storage.RequestQuery {
		return &storage.RequestQuery{Org: "default", Filter: f, Limit: 50}
	}
	offset := newest(storage.All{})
	offset.Offset = 10_000
	slowest := newest(storage.All{})
	slowest.Sort = []storage.Sort{{Key: storage.SortLatency, Desc: true}}
	scan := and(
		&storage.Leaf{Field: field("latency"), Op: storage.GT, Number: storage.DecimalOf(1e9)},
		and(
			&storage.Leaf{Field: field("model"), Op: storage.Contains, Text: "GPT"},
			&storage.Leaf{Field: field("cost"), Op: storage.GTE, Number: storage.DecimalOf(0.001)},
		),
	)
	nested := or(
		&storage.Leaf{Field: field("latency"), Op: storage.GT, Number: storage.DecimalOf(1e9)},
		and(
			&storage.Leaf{Field: field("model"), Op: storage.Contains, Text: "GPT"},
			&storage.Leaf{Field: field("cost"), Op: storage.GTE, Number: storage.DecimalOf(1000)},
		),
	)
	property := func(name, value string) *storage.Leaf {
		return &storage.Leaf{Field: field("properties"), Key: name, Text: value}
	}
	user := &storage.Leaf{Field: field("user_id"), Text: "user-0"}
	return map[string]*storage.RequestQuery{
		"newest":              newest(storage.All{}),
		"newest_offset_10000": offset,
		"scan_3_leaves":       newest(scan),
		"scan_3_leaves_or":    newest(nested),
		"user":                newest(user),
		"property_rare":       newest(property("Tenant", last.Properties["Tenant"])),
		"property_common":     newest(property("Environment", "production")),
		"user_and_property":   newest(and(user, property("Environment", "production"))),
		"sort_latency":        slowest,
	}
}

func measure(b *testing.B, do func() error) {
	b.ReportAllocs()
	forgetPeak(b)
	start := cpuTime()
	for b.Loop() {
		if err := do(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime()-start).Microseconds())/float64(b.N), "cpu-us/op")
	b.ReportMetric(peakMB(b), "peak-MB")
}

// forgetPeak makes peakMB the most memory that the process has from now on.
func forgetPeak(b *testing.B) {
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
}

// peakMB is the most memory that the process had, but for the pages of files.
func peakMB(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	kB := func(field string) (n float64) {
		_, rest, _ := strings.Cut(string(status), "\n"+field+":")
		if _, err := fmt.Sscan(rest, &n); err != nil {
			b.Fatal(field, err)
		}
		return n
	}
	return (kB("VmHWM") - kB("RssFile")) / 1024
}

func cpuTime() time.Duration {
	usage := processUsage()
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func processUsage() (usage unix.Rusage) {
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		panic(err) // only for arguments that are none
	}
	return usage
}
