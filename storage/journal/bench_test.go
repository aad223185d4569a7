//go:build unix

package journal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/test/prose"
)

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measured reports the processor time of an operation, deferred work included.
func measured(b *testing.B, f func()) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	start := cpu()
	f()
	b.ReportMetric(float64((cpu()-start).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
}

// exchange is a record with bodies of about this many bytes of prose.
func exchange(bytes, seed int) (*storage.Record, *storage.Content) {
	r, _ := sample(seed)
	random := rand.New(rand.NewPCG(1, uint64(seed)))
	words := strings.Fields("the river flows over a low dam and engineers measure how much of it without stopping what passes there")
	prose := func(n int) []byte {
		var s strings.Builder
		s.WriteString(`{"messages":[{"role":"user","content":"`)
		for s.Len() < n {
			s.WriteString(words[random.IntN(len(words))])
			s.WriteByte(' ')
		}
		s.WriteString(`"}]}`)
		return []byte(s.String())
	}
	return r, &storage.Content{
		Request:  storage.Body{Type: "application/json", Data: prose(bytes * 3 / 5)},
		Response: storage.Body{Type: "application/json", Data: prose(bytes * 2 / 5)},
	}
}

// held opens a journal whose backend takes nothing, so that only the appends
// are measured.
func held(b *testing.B) *Journal {
	b.Helper()
	slow := &backend{}
	unblock := slow.block()
	j := open(b, slow, Options{Dir: b.TempDir(), MaxBytes: 1 << 40})
	b.Cleanup(func() {
		abandon(j)
		unblock()
	})
	return j
}

func benchmarkAppend(b *testing.B, bytes int) {
	j := held(b)
	r, c := exchange(bytes, 0)
	b.SetBytes(int64(bytes))
	measured(b, func() {
		for n := range b.N {
			r.ID = numbered(n % 1000)
			if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAppendSingle(b *testing.B) { benchmarkAppend(b, 5<<10) }
func BenchmarkAppend100KB(b *testing.B)  { benchmarkAppend(b, 100<<10) }

// BenchmarkWrite is the floor under appends: their bytes, and nothing else.
func BenchmarkWrite(b *testing.B) {
	for _, bytes := range []int{5 << 10, 100 << 10} {
		b.Run(strconv.Itoa(bytes>>10)+"KB", func(b *testing.B) {
			f, err := openFile(b.TempDir()+"/f", os.O_CREATE|os.O_RDWR)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			_, c := exchange(bytes, 0)
			pieces := [][]byte{c.Request.Data, c.Response.Data}
			measured(b, func() {
				for n := range b.N {
					if err := f.write(pieces, int64(n*bytes)); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func BenchmarkAppendParallel(b *testing.B) {
	j := held(b)
	b.SetParallelism(8) // 16 on two processors
	measured(b, func() {
		b.RunParallel(func(p *testing.PB) {
			r, c := exchange(5<<10, 0)
			for n := 0; p.Next(); n++ {
				r.ID = numbered(n % 1000)
				if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

func BenchmarkEncodeMetadata(b *testing.B) {
	r, _ := sample(0)
	buf := make([]byte, 0, 4096)
	measured(b, func() {
		for range b.N {
			recordWire.append(buf, r)
		}
	})
	b.ReportMetric(float64(len(recordWire.append(buf, r))), "bytes")
}

// segmentOf returns a journal with one closed raw segment of 1000 exchanges.
func segmentOf(b *testing.B) (*Journal, *segment) {
	b.Helper()
	j := held(b)
	for n := range 1000 {
		r, c := exchange(5<<10, n)
		c.Request.Data, c.Response.Data = c.Request.Data[n%97:], c.Response.Data[n%89:]
		if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
			b.Fatal(err)
		}
	}
	s := j.log.active
	j.log.turn.Lock()
	j.log.close(s)
	j.log.turn.Unlock()
	return j, s
}

func BenchmarkSeal(b *testing.B) {
	_, s := segmentOf(b)
	var z sealer
	var as sealed
	measured(b, func() {
		for range b.N {
			var err error
			if as, _, err = z.write(b.Context(), s, b.TempDir()+"/sealed"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N*1000), "µs/record")
	b.ReportMetric(float64(s.size)/float64(as.Size), "ratio")
}

// BenchmarkGrams makes the grams of a segment, of prose with 16,000 words.
func BenchmarkGrams(b *testing.B) {
	const records = 3000
	j := held(b)
	words := prose.New(1)
	for n := range records {
		r, c := exchange(0, n)
		c.Request.Data = fmt.Appendf(nil, `{"messages":[{"role":"user","content":%q}]}`, words.Text(3<<10))
		c.Response.Data = fmt.Appendf(nil, `{"choices":[{"message":{"content":%q}}]}`, words.Text(2<<10))
		if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
			b.Fatal(err)
		}
	}
	s := j.log.active
	j.log.turn.Lock()
	j.log.close(s)
	j.log.turn.Unlock()
	path, to := b.TempDir()+"/sealed", b.TempDir()+"/grams"
	if _, _, err := new(sealer).write(b.Context(), s, path); err != nil {
		b.Fatal(err)
	}
	g := gramsBuilder{}
	measured(b, func() {
		for range b.N {
			if err := g.build(b.Context(), path, to); err != nil {
				b.Fatal(err)
			}
		}
	})
	info, err := os.Stat(to)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/records, "bytes/record")
	b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N*records), "µs/record")
}

func BenchmarkContentRaw(b *testing.B) {
	j, s := segmentOf(b)
	measured(b, func() { readAll(b, j, s.number) })
}

func BenchmarkContentSealed(b *testing.B) {
	j, s := segmentOf(b)
	if err := j.maintenance.seal(b.Context(), new(sealer), s); err != nil {
		b.Fatal(err)
	}
	for name, ordinal := range map[string]func(n int) uint32{
		"random": func(n int) uint32 { return uint32(n*379) % 1000 },
		"newest": func(n int) uint32 { return 999 - uint32(n%1000) },
	} {
		b.Run(name, func(b *testing.B) {
			measured(b, func() {
				for n := range b.N {
					if c, err := j.Contents().Content(b.Context(), &storage.Record{Content: storage.ContentRef{Segment: s.number, Ordinal: ordinal(n)}}); c == nil || err != nil {
						b.Fatal(c, err)
					}
				}
			})
		})
	}
}

func readAll(b *testing.B, j *Journal, segment uint64) {
	for n := range b.N {
		at := n * 379 % 1000
		r := &storage.Record{ID: numbered(at), Org: "acme", Content: storage.ContentRef{Segment: segment, Ordinal: uint32(at)}}
		if c, err := j.Contents().Content(b.Context(), r); c == nil || err != nil {
			b.Fatal(c, err)
		}
	}
}

// BenchmarkDrain is what it costs to read entries back into batches.
func BenchmarkDrain(b *testing.B) {
	_, s := segmentOf(b)
	measured(b, func() {
		for range b.N {
			sc := s.scanner(0, scanWindow)
			for {
				e, err := sc.next()
				if err != nil {
					break
				}
				if err := recordWire.parse(e.metadata, new(storage.Record)); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N*1000), "µs/record")
}

func BenchmarkBegin(b *testing.B) {
	j := open(b, &backend{}, Options{Dir: b.TempDir()})
	measured(b, func() {
		b.RunParallel(func(p *testing.PB) {
			r, _ := sample(0)
			for p.Next() {
				j.Begin(r)
			}
		})
	})
}

// BenchmarkSync appends 100 calls a second, with and without the sync of once a second: run it with
// -benchtime 2000x. It reports the processor time of a call, and how long the slowest hundredth of
// the appends takes.
func BenchmarkSync(b *testing.B) {
	for _, syncs := range []bool{false, true} {
		b.Run(strconv.FormatBool(syncs), func(b *testing.B) {
			j := open(b, &backend{}, Options{Dir: b.TempDir()})
			if !syncs {
				alone(j)
			}
			r, c := exchange(3500, 0)
			took := make([]time.Duration, b.N)
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			measured(b, func() {
				for n := range b.N {
					<-tick.C
					r.ID, r.CreatedAt = numbered(n), storage.Millis(time.Now())
					began := time.Now()
					if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
						b.Fatal(err)
					}
					took[n] = time.Since(began)
				}
			})
			slices.Sort(took)
			b.ReportMetric(float64(took[b.N*99/100].Microseconds()), "p99-µs")
		})
	}
}

// An erasure that chooses once more, beside as many records under hold as it has found before and without: these cost
// no more than others.
func BenchmarkChooseAgain(b *testing.B) {
	for _, held := range []int{0, 100_000} {
		b.Run(fmt.Sprint("held ", held), func(b *testing.B) {
			backend := new(storagetest.Memory)
			j := open(b, backend, Options{Dir: b.TempDir()})
			j.nodes.states = map[uuid.UUID]nodeState{j.identity: {FilterKey: make([]byte, filterKeyBytes)}}
			batch := storage.Batch{}
			for range 10_000 {
				batch.Records = append(batch.Records, &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: 1})
			}
			if err := backend.Write(b.Context(), &batch); err != nil {
				b.Fatal(err)
			}
			e := Erasure{Org: "acme", Scope: storage.EraseRecord, RequestedAt: 2, Filter: storage.AppendJSON(nil, storage.All{})}
			for n := range held { // others came before those that are there
				id := uuid.New()
				if records := batch.Records; n >= held-len(records) {
					id = records[n-(held-len(records))].ID
				}
				e.Held = append(e.Held, id)
			}
			for b.Loop() {
				if err := j.erasures.takeLate(b.Context(), &e, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
