package sqlite

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

var (
	benchmarkRecords   = flag.Int("sqlite.records", 10_000, "records in the database of the benchmarks")
	benchmarkUnordered = flag.Bool("sqlite.unordered", false, "the ids of the requests are random, as those that clients send may be")
	benchmarkPeople    = flag.Int("sqlite.developers", 0, "the records are of so many developers with long sessions; 0 for many users with short ones")
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
	more := 0.6 // calls of a session that is open, of all calls
	if *benchmarkPeople > 0 {
		more = 0.98
	}
	if len(t.open) == open && t.r.Float64() < more {
		return t.open[t.r.IntN(open)]
	}
	s := conversation{uint64(t.sessions / sessionsPerUser), t.sessions}
	switch {
	case *benchmarkPeople > 0:
		s.user = t.users.Uint64() % uint64(*benchmarkPeople)
	case t.sessions%sessionsPerUser > 0:
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

// noContents stands for content that has been deleted.
type noContents struct{}

func (noContents) Content(context.Context, *storage.Record) (*storage.Content, error) {
	return nil, nil
}

func (c noContents) Reader(storage.ContentPart) storage.ContentReader { return c }

func (noContents) Close() {}
