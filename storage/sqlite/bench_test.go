package sqlite

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

var (
	benchmarkRecords   = flag.Int("sqlite.records", 10_000, "records in the database of the benchmarks")
	benchmarkUnordered = flag.Bool("sqlite.unordered", false, "the ids of the requests are random, as those that clients send may be")
	benchmarkDatabase  = flag.String("sqlite.database", "", "file of that database, which is made if there is none, and kept")
)

// benchmarkSpan is the time that the records of a benchmark's database take up.
const benchmarkSpan = 90 * 24 * time.Hour

// traffic makes plausible records, in order of time.
type traffic struct {
	r        *rand.Rand
	users    *rand.Zipf
	open     []conversation
	sessions int
	at       storage.Timestamp
	step     float64
	n        int
}

// conversation is a session of a user.
type conversation struct {
	user   uint64
	number int
}

func newTraffic(records int) *traffic {
	r := rand.New(rand.NewPCG(1, 2))
	return &traffic{
		r:     r,
		users: rand.NewZipf(r, 1.2, 20, uint64(records/20+1)),
		at:    storage.Millis(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)),
		step:  float64(benchmarkSpan/time.Millisecond) / float64(*benchmarkRecords),
	}
}

// sessionsPerUser makes 50,000 users of the 400,000 sessions of a million records.
const sessionsPerUser = 8

// session goes on with a session, or begins the next, which takes the place of an
// older one. Some begin with a new user, the others are mostly of few.
func (t *traffic) session() conversation {
	const open = 1000
	if len(t.open) == open && t.r.IntN(5) < 3 {
		return t.open[t.r.IntN(open)]
	}
	s := conversation{uint64(t.sessions / sessionsPerUser), t.sessions}
	if t.sessions%sessionsPerUser > 0 {
		s.user = t.users.Uint64() % (s.user + 1)
	}
	t.sessions++
	if len(t.open) < open {
		t.open = append(t.open, s)
	} else {
		t.open[s.number%open] = s
	}
	return s
}

var benchmarkModels = func() (models []string) {
	models = []string{"gpt-5-mini", "gpt-5", "claude-haiku-4-5", "claude-sonnet-4-5", "gemini-3-flash"}
	for i := len(models); i < 40; i++ {
		models = append(models, fmt.Sprintf("model-%d", i))
	}
	return models
}()

func (t *traffic) next() *storage.Record {
	r := t.r
	t.n++
	t.at += storage.Timestamp(2 * r.Float64() * t.step)
	session := t.session()
	latency := time.Duration(200+r.ExpFloat64()*1500) * time.Millisecond
	model := benchmarkModels[min(r.IntN(len(benchmarkModels)), r.IntN(len(benchmarkModels)), r.IntN(len(benchmarkModels)))]
	rec := &storage.Record{
		ID: orderedID(t.at, r), Org: "default", AuthHash: "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8",
		CreatedAt: t.at, RespondedAt: t.at + storage.Timestamp(latency.Milliseconds()), UpdatedAt: t.at + storage.Timestamp(latency.Milliseconds()),
		Latency: plugins.KnownDuration(latency), TimeToFirstToken: plugins.KnownDuration(latency / 4), Status: plugins.Known(200),
		Provider: "openai", Dialect: plugins.Chat, Model: model, RequestModel: model, ResponseModel: model,
		Path: "/v1/chat/completions", TargetURL: "https://api.openai.com/v1/chat/completions",
		ResponseID: fmt.Sprintf("chatcmpl-%024x", r.Uint64()), Stream: true, Finish: "stop",
		RequestBytes: 3000, ResponseBytes: 2000,
		Usage:        plugins.Usage{Input: plugins.Known(r.Int64N(4000)), Output: plugins.Known(r.Int64N(1000)), CacheRead: plugins.Known(0)},
		Cost:         plugins.KnownCost(plugins.Nanodollars(r.Int64N(10_000_000))),
		PriceVersion: "2026-11-01", CountryCode: "DE",
		UserID:    fmt.Sprintf("user-%d", session.user),
		SessionID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, session.number)).String(), // as clients make them
		Properties: map[string]string{
			"Environment": []string{"production", "production", "production", "staging"}[r.IntN(4)],
			"Feature":     fmt.Sprintf("feature-%d", r.IntN(40)),
			"Tenant":      fmt.Sprintf("tenant-%d", r.IntN(20_000)),
		},
		Attempt: 1,
		Content: storage.ContentRef{Segment: uint64(1 + t.n/10_000), Ordinal: uint32(t.n % 10_000)},
	}
	if *benchmarkUnordered {
		rec.ID = orderedID(storage.Timestamp(r.Uint64()), r) // in no order
	}
	if r.IntN(20) == 0 {
		rec.Status, rec.ErrorType = plugins.Known(429), "rate_limit_exceeded"
	}
	return rec
}

// orderedID is a version 7 UUID, as Weir gives them.
func orderedID(at storage.Timestamp, r *rand.Rand) (id uuid.UUID) {
	for i := range 6 {
		id[i] = byte(at >> (40 - 8*i))
	}
	for i := 6; i < 16; i++ {
		id[i] = byte(r.Uint32())
	}
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

// batch takes the next n records.
func (t *traffic) batch(n int) *storage.Batch {
	b := &storage.Batch{End: storage.Position{Segment: 1, Ordinal: uint32(t.n + n)}}
	for range n {
		b.Records = append(b.Records, t.next())
	}
	return b
}

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

// noContents stands for content that has been deleted.
type noContents struct{}

func (noContents) Content(context.Context, *storage.Record) (*storage.Content, error) {
	return nil, nil
}

func (c noContents) Reader(storage.ContentPart) storage.ContentReader { return c }

func (noContents) Close() {}

func field(name string) *storage.Field { return storage.LookupField(storage.RequestResponse, name) }

func and(left, right storage.Filter) storage.Filter {
	return &storage.Branch{Left: left, Right: right}
}

func or(left, right storage.Filter) storage.Filter {
	return &storage.Branch{Left: left, Right: right, Or: true}
}
