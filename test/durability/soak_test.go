//go:build linux

package durability

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var soak = flag.Duration("soak", 0, "how long TestSoak runs; without it, it does not")

// level is what a process takes at a time.
type level struct {
	memory, descriptors, goroutines, disk int
}

// TestSoak runs all kinds of calls, queries and reloads for long, with a
// retention of minutes, which so runs out as often in twenty minutes as one of
// hours does in a day. What the process takes must not grow.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("-soak=20m takes it")
	}
	p := newProvider(t)
	w := newWeir(t, p)
	configs := []config{
		{store: "retention 2m\ncontent_retention 1m"},
		{store: "retention 2m\ncontent_retention 1m", llm: "key another-key query"},
	}
	w.start(configs[0])
	succeed(t, p, w, 100, 0)
	idle := w.level()

	var seen atomic.Int64
	seen.Add(100)
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), *soak)
	defer cancel()
	for range 16 {
		group.Go(func() {
			for ctx.Err() == nil {
				c := p.random()
				if rand.N(20) == 0 {
					c.cut, c.stream = true, true
				} else if rand.N(20) == 0 {
					c.reads, c.stream = 60, true
				}
				o := c.do(t.Context(), w)
				if o.id != "" {
					seen.Add(1)
				} else if c.begun.Load() {
					t.Errorf("%s: %v", c.name(), o.err)
				}
				p.calls.Delete(c.number)
			}
		})
	}
	group.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			time.Sleep(500 * time.Millisecond)
			w.queryAll(t)
			if n%60 == 59 {
				if err := w.reload(configs[n/60%2]); err != nil {
					t.Error(err)
				}
			}
		}
	})
	var levels []level
	for ctx.Err() == nil {
		time.Sleep(*soak / 100)
		levels = append(levels, w.level())
		w.balances()
	}
	group.Wait()

	quarter := len(levels) / 4
	early, late := median(levels[quarter:2*quarter]), median(levels[3*quarter:])
	w.flush()
	b := w.settled()
	t.Logf("%d calls in %v; idle %+v, second quarter %+v, last %+v", seen.Load(), *soak, idle, early, late)
	for what, grown := range map[string]bool{
		"memory":      late.memory > early.memory*5/4+8<<20,
		"descriptors": late.descriptors > early.descriptors+10,
		"goroutines":  late.goroutines > early.goroutines+20,
		"disk":        late.disk > early.disk*3/2+8<<20,
	} {
		if grown {
			t.Errorf("%s has grown", what)
		}
	}
	// A connection that a reload reset has no answer, and may have a record.
	if n := seen.Load(); b.Recorded != b.Seen || b.Seen < n || b.Seen > n+n/1000+10 {
		t.Errorf("%d calls, and the balance is %+v", n, b)
	}
	w.await("goroutines and descriptors are as many as before", func() bool {
		now := w.level()
		return now.goroutines <= idle.goroutines+10 && now.descriptors <= idle.descriptors+8
	})
}

// queryAll asks what people ask, of all records there are.
func (w *weir) queryAll(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/request/query-clickhouse": `{"filter":{"request_response_rmt":{"response_body":{"contains":"answer 1"}}},"limit":20}`,
		"/v1/user/metrics/query":       `{"sort":{"cost":"desc"}}`,
		"/v1/session/metrics/query":    `{}`,
	} {
		r, err := http.NewRequest("POST", "http://"+w.site+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+key)
		if _, err := exchange(r); err != nil {
			t.Error(err)
		}
	}
}

var residentMemory = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// level is what the process takes now: bytes of memory and of disk.
func (w *weir) level() level {
	w.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.pid()))
	if err != nil {
		w.t.Fatal(err)
	}
	l := level{descriptors: w.descriptors(), goroutines: w.goroutines()}
	if found := residentMemory.FindSubmatch(text); found != nil {
		kilobytes, _ := strconv.Atoi(string(found[1]))
		l.memory = kilobytes << 10
	}
	err = filepath.WalkDir(filepath.Join(w.dir, "data"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				l.disk += int(info.Size())
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // segments go while we look
			return nil
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	return l
}

// median is the median of each.
func median(levels []level) (m level) {
	of := func(value func(level) int) int {
		values := make([]int, len(levels))
		for i, l := range levels {
			values[i] = value(l)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	m.memory = of(func(l level) int { return l.memory })
	m.descriptors = of(func(l level) int { return l.descriptors })
	m.goroutines = of(func(l level) int { return l.goroutines })
	m.disk = of(func(l level) int { return l.disk })
	return m
}
