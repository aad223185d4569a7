//go:build linux

package sqlite

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// BenchmarkContent looks for words in the bodies of -sqlite.records records, 5 KB
// each, in segments that the journal wrote and sealed.
func BenchmarkContent(b *testing.B) {
	ctx := b.Context()
	s := New(filepath.Join(b.TempDir(), "weir.db"))
	o := journal.Options{Dir: b.TempDir(), MaxBytes: 1 << 40}
	j, err := journal.Open(ctx, s, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { j.Close(context.Background()) })
	t := newTraffic(*benchmarkRecords)
	for range *benchmarkRecords {
		r := t.next()
		r.Content = storage.ContentRef{}
		if err := j.Append(r, storagetest.Kept(r, talk(t.r))); err != nil {
			b.Fatal(err)
		}
	}
	for j.Status().PendingRecords > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	j.Reconfigure(o) // which makes it look for what can be sealed
	for j.Status().RawSegments > 1 {
		time.Sleep(10 * time.Millisecond)
	}
	status := j.Status()
	var grams []string
	for len(grams) < status.SealedSegments {
		time.Sleep(10 * time.Millisecond)
		grams, _ = filepath.Glob(filepath.Join(o.Dir, "*.grm"))
	}
	var size int64
	for _, path := range grams {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	b.Logf("%d sealed segments of %d bytes, with grams of %d bytes", status.SealedSegments, status.SealedBytes/int64(max(1, status.SealedSegments)), size/int64(max(1, len(grams))))

	for name, word := range map[string]string{"rare word": "Xylophone", "common word": "Engineers", "rare word of common letters": "Intestines"} {
		contains := &storage.Leaf{Field: field("request_body"), Op: storage.Contains, Text: word}
		q := &storage.RequestQuery{Org: "default", Filter: contains, Limit: 50}
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			measure(b, func() error {
				_, err := s.Requests(ctx, q)
				return err
			})
		})
	}
}

var benchmarkWords = strings.Fields(`the river flows over a low dam and engineers measure how much of it without
	stopping what passes there; between them they know by its depth, within a few percent, what a day has brought`)

func prose(r *rand.Rand, bytes int) string {
	var s strings.Builder
	for s.Len() < bytes {
		s.WriteString(benchmarkWords[r.IntN(len(benchmarkWords))])
		s.WriteByte(' ')
	}
	return s.String()
}

// instructions are what the application says with each question.
var instructions = prose(rand.New(rand.NewPCG(1, 2)), 1500)

// talk is a content of 5 KB.
func talk(r *rand.Rand) *storage.Content {
	asJSON := func(s string) storage.Body { return storage.Body{Type: "application/json", Data: []byte(s)} }
	return &storage.Content{
		Request: asJSON(`{"model":"gpt-5","messages":[{"role":"system","content":"` + instructions +
			`"},{"role":"user","content":"` + prose(r, 1500) + `"}]}`),
		Response: asJSON(`{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + prose(r, 2000) +
			`"},"finish_reason":"stop"}]}`),
	}
}
