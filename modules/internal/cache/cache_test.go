package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// ledger has records in memory.
type ledger struct {
	mu       sync.Mutex // guards what follows
	records  map[storage.RecordKey]*storage.Record
	answers  map[uuid.UUID]storage.Body
	last     storage.RecordKey // that was added
	removals uint64
	reads    int // of answers
}

func (l *ledger) Removals() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.removals
}

func (l *ledger) Request(_ context.Context, key storage.RecordKey) (*storage.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.records[key]; r != nil {
		return r, nil
	}
	return nil, storage.ErrNotFound
}

func (l *ledger) Answer(_ context.Context, r *storage.Record) (storage.Body, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	return l.answers[r.ID], nil
}

// add adds a record with its answer.
func (l *ledger) add(r *storage.Record, answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = r.Key()
	l.records[l.last], l.answers[r.ID] = r, storage.Body{Type: "application/json", Data: []byte(answer)}
}

// erase removes the record that was added last, and returns its id.
func (l *ledger) erase() uuid.UUID {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.records, l.last)
	delete(l.answers, l.last.ID)
	l.removals++
	return l.last.ID
}

func opened(t testing.TB, l *ledger) *Cache {
	t.Helper()
	c, err := Open(t.TempDir(), []byte("secret"), l, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func asking(body string) *Request {
	object, _ := plugins.ParseObject([]byte(body))
	return &Request{
		Org: "acme", Target: []string{"openai"}, Method: http.MethodPost, Path: "/v1/chat/completions", Dialect: plugins.Chat,
		Header: http.Header{"Openai-Beta": {"a"}}, Body: object,
	}
}

var (
	seen    = &plugins.ResponseInfo{Dialect: plugins.Chat, Phase: plugins.Ended, Finish: "stop", Content: true}
	options = &Options{Read: true, Save: true, Buckets: 1, Lifetime: time.Hour}
)

const question, answer = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, `{"choices":[]}`

// lead leads a call, and has it answered.
func lead(t *testing.T, c *Cache, l *ledger, q *Request, o *Options) *storage.Record {
	t.Helper()
	hit, leads, _ := c.Answer(t.Context(), q, o)
	if hit != nil || leads == nil {
		t.Fatalf("%v, %v", hit, leads)
	}
	r := &storage.Record{ID: uuid.New(), Org: q.Org, Dialect: q.Dialect, Status: plugins.Known(200), AnswerCache: storage.CacheMiss}
	l.add(r, answer)
	leads.Save(r, seen, []byte(answer), false)
	leads.End()
	return r
}

func newLedger() *ledger {
	return &ledger{records: map[storage.RecordKey]*storage.Record{}, answers: map[uuid.UUID]storage.Body{}}
}

// What is not as it was when it was saved is not given again: the provider is asked.
func TestWhatIsGoneIsAMiss(t *testing.T) {
	for name, change := range map[string]func(l *ledger, r *storage.Record){
		"the record":     func(l *ledger, r *storage.Record) { delete(l.records, r.Key()) },
		"the content":    func(l *ledger, r *storage.Record) { delete(l.answers, r.ID) },
		"masked":         func(_ *ledger, r *storage.Record) { r.Masked = `{"email":1}` },
		"another answer": func(l *ledger, r *storage.Record) { l.answers[r.ID] = storage.Body{Data: []byte(`{"choices":[ ]}`)} },
		"an omitted one": func(_ *ledger, r *storage.Record) { r.RequestOmitted = true },
		"an interrupted": func(_ *ledger, r *storage.Record) { r.EndState = storage.Interrupted },
		"another's record": func(l *ledger, r *storage.Record) {
			delete(l.records, r.Key())
			l.records[storage.RecordKey{Org: "b", ID: r.ID}] = r
		},
	} {
		l := newLedger()
		c := opened(t, l)
		r := lead(t, c, l, asking(question), options)
		if hit, _, _ := c.Answer(t.Context(), asking(question), options); hit == nil || hit.Record != r || string(hit.Body.Data) != answer {
			t.Fatalf("%s: %+v", name, hit)
		}
		change(l, r)
		l.removals++
		lead(t, c, l, asking(question), options)
	}
}

// An answer is read once for the hits of some seconds, unless something was removed meanwhile.
func TestReplays(t *testing.T) {
	l := newLedger()
	c := opened(t, l)
	hit := func(reads int) {
		t.Helper()
		if hit, _, _ := c.Answer(t.Context(), asking(question), options); hit == nil || string(hit.Body.Data) != answer || l.reads != reads {
			t.Fatalf("%+v after %d reads, want %d", hit, l.reads, reads)
		}
	}
	r := lead(t, c, l, asking(question), options)
	l.answers[r.ID] = storage.Body{Data: []byte(answer + " of a larger block")[:len(answer)]}
	hit(1)
	clear(l.answers[r.ID].Data) // the memory is the journal's
	hit(1)
	l.answers[r.ID] = storage.Body{Data: []byte(answer)}
	l.removals++
	hit(2)
	hit(2)
	old := c.replays.all[r.Key()]
	old.read = old.read.Add(-replayLife)
	c.replays.all[r.Key()] = old
	hit(3)
	for i := range 2 * maxReplays / recordBytes {
		c.replays.put(storage.RecordKey{Org: fmt.Sprint(i)}, replay{record: r, body: storage.Body{Data: []byte(answer)}})
		if c.replays.bytes > maxReplays {
			t.Fatalf("%d bytes", c.replays.bytes)
		}
	}
	c.replays.put(r.Key(), replay{record: r, body: storage.Body{Data: make([]byte, maxReplays)}})
	if c.replays.bytes > maxReplays {
		t.Errorf("%d bytes with a large answer", c.replays.bytes)
	}
}

// Requests are equal only if the provider could not tell them apart.
func TestEqualRequests(t *testing.T) {
	for name, c := range map[string]struct {
		change func(q *Request)
		equal  bool
	}{
		"white space": {func(q *Request) {
			q.Body = asking(`{ "model" : "m", "messages":[ {"role":"user","content":"hi"}]} `).Body
		}, true},
		"the order":         {func(q *Request) { q.Body = asking(`{"messages":[{"role":"user","content":"hi"}],"model":"m"}`).Body }, true},
		"the order below":   {func(q *Request) { q.Body = asking(`{"model":"m","messages":[{"content":"hi","role":"user"}]}`).Body }, false},
		"space in a text":   {func(q *Request) { q.Body = asking(`{"model":"m","messages":[{"role":"user","content":"h i"}]}`).Body }, false},
		"a quote in a text": {func(q *Request) { q.Body = asking(`{"model":"m","messages":[{"role":"user","content":"\" "}]}`).Body }, false},
		"another field": {func(q *Request) {
			q.Body = asking(`{"model":"m","messages":[{"role":"user","content":"hi"}],"n":1}`).Body
		}, false},
		"a moved border": {func(q *Request) {
			q.Body = asking(`{"model":"m","messages":[{"role":"user","content":"hi"}],"a":"b"}`).Body
		}, false},
		"organisation":       {func(q *Request) { q.Org = "b" }, false},
		"target":             {func(q *Request) { q.Target = []string{"open", "ai"} }, false},
		"path":               {func(q *Request) { q.Path += "/" }, false},
		"query":              {func(q *Request) { q.Query = "a=b" }, false},
		"dialect":            {func(q *Request) { q.Dialect = plugins.Completions }, false},
		"a header":           {func(q *Request) { q.Header = http.Header{"Openai-Beta": {"b"}} }, false},
		"more of it":         {func(q *Request) { q.Header = http.Header{"Openai-Beta": {"a", "a"}} }, false},
		"a credential":       {func(q *Request) { q.Header.Set("Authorization", "Bearer x") }, false},
		"a header of no use": {func(q *Request) { q.Header.Set("X-Stainless-Retry-Count", "1"); q.Header.Set("User-Agent", "x") }, true},
	} {
		l := newLedger()
		cache := opened(t, l)
		lead(t, cache, l, asking(question), options)
		q := asking(question)
		c.change(q)
		hit, leads, _ := cache.Answer(t.Context(), q, &Options{Read: true, Buckets: 1})
		if (hit != nil) != c.equal {
			t.Errorf("%s: equal is %t", name, hit != nil)
		}
		leads.End()
	}
}

// A request that the table knows is not read again, unless it may differ in what its caller ignores.
func TestIgnoredFieldsAreRead(t *testing.T) {
	l := newLedger()
	c := opened(t, l)
	o := &Options{Read: true, Save: true, Buckets: 1, Lifetime: time.Hour, Ignore: []string{"messages"}}
	lead(t, c, l, asking(question), o)
	if hit, _, refusal := c.Answer(t.Context(), asking(strings.Replace(question, "hi", "ho", 1)), o); hit == nil {
		t.Fatalf("no hit: %s", refusal)
	}
	linked := asking(`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]}`)
	if hit, leads, refusal := c.Answer(t.Context(), linked, o); hit != nil || leads != nil || refusal == "" {
		t.Errorf("a request with a link gets %v, %v and the refusal %q", hit, leads, refusal)
	}
}

// Of a thousand callers that ask the same, of organisations, of credentials and of nobody, each gets
// its own answer alone.
func TestNoAnswerOfAnother(t *testing.T) {
	l := newLedger()
	c := opened(t, l)
	caller := func(n int) *Request {
		q := asking(question)
		switch n % 3 {
		case 0:
			q.Org = fmt.Sprint("org ", n)
		case 1:
			q.Header = http.Header{"Authorization": {fmt.Sprint("Bearer ", n)}}
		case 2:
			q.Target = []string{"openai", fmt.Sprint("project ", n)}
		}
		return q
	}
	const callers = 1000
	records := make([]*storage.Record, callers)
	for n := range callers {
		records[n] = lead(t, c, l, caller(n), options) // fails if there is a hit
	}
	for n := range callers {
		if hit, _, _ := c.Answer(t.Context(), caller(n), options); hit == nil || hit.Record != records[n] {
			t.Fatalf("caller %d gets %+v", n, hit)
		}
	}
}

// When a lead ends without an answer for others, the next call leads and the others wait for it. Only
// what the provider could not give or does not want to be stored, or what the journal does not have as
// it came, is asked for by all.
func TestWhoLeadsNext(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(l *Lead)
		lead int // calls that go to the provider at once
	}{
		{"refused, cut or gone", func(l *Lead) { l.End() }, 1},
		{"failed", func(l *Lead) { l.Withhold(); l.End() }, 5},
		{"incomplete", func(l *Lead) {
			l.Save(&storage.Record{Dialect: plugins.Chat, Status: plugins.Known(200), AnswerCache: storage.CacheMiss, EndState: storage.UpstreamAborted}, seen, []byte(answer), false)
			l.End()
		}, 5},
		{"answered, and stored in another form", func(l *Lead) {
			l.Save(&storage.Record{Dialect: plugins.Chat, Status: plugins.Known(200), AnswerCache: storage.CacheMiss}, seen, []byte(answer), false)
			l.End()
		}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache := opened(t, newLedger())
				_, first, _ := cache.Answer(t.Context(), asking(question), options)
				leads := make(chan *Lead, 5)
				for range 5 {
					go func() {
						_, l, _ := cache.Answer(t.Context(), asking(question), options)
						leads <- l
					}()
				}
				synctest.Wait()
				c.end(first)
				for n := 0; n < 5; {
					synctest.Wait()
					if len(leads) != min(c.lead, 5-n) {
						t.Fatalf("%d calls lead, want %d", len(leads), c.lead)
					}
					for range len(leads) {
						(<-leads).End()
						n++
					}
				}
			})
		})
	}
}

// The table has no more than the newest entries, and none that has expired.
func TestTrim(t *testing.T) {
	l := newLedger()
	c := opened(t, l)
	for i := range 10 {
		saved := time.UnixMilli(int64(1000 + i))
		e := entry{record: uuid.New(), saved: saved, expires: saved.Add(time.Duration(i) * time.Hour)}
		if err := c.table.add(t.Context(), Key{byte(i)}, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.table.trim(t.Context(), time.UnixMilli(1000), 4); err != nil {
		t.Fatal(err)
	}
	var keys []byte
	for i := range 10 {
		if there, err := c.table.entries(t.Context(), Key{byte(i)}, time.UnixMilli(0)); err != nil || len(there) > 0 {
			keys = append(keys, byte(i))
		}
	}
	if !bytes.Equal(keys, []byte{6, 7, 8, 9}) {
		t.Errorf("the table has %v", keys)
	}
}

// Entries in memory expire, and show what is written.
func TestEntriesInMemory(t *testing.T) {
	c := opened(t, newLedger())
	now := time.Now()
	e := entry{record: uuid.New(), saved: now, expires: now.Add(time.Hour)}
	want := func(n int, at time.Time) {
		t.Helper()
		for range 2 {
			if there, err := c.table.entries(t.Context(), Key{1}, at); err != nil || len(there) != n {
				t.Fatalf("%v, %v; want %d", there, err, n)
			}
		}
	}
	want(0, now)
	for i := range 2 {
		e.bucket = i
		if err := c.table.add(t.Context(), Key{1}, e); err != nil {
			t.Fatal(err)
		}
		want(i+1, now)
	}
	want(0, now.Add(2*time.Hour))
	if err := c.table.remove(t.Context(), Key{1}, e); err != nil {
		t.Fatal(err)
	}
	want(1, now)
	for i := range 2 * maxKnown {
		c.table.remember(Key{2, byte(i), byte(i >> 8)}, []entry{e}, c.table.writes)
	}
	if len(c.table.known) > maxKnown {
		t.Errorf("%d keys in memory", len(c.table.known))
	}
}

// A file that is no table is made anew.
func TestBrokenTable(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), bytes.Repeat([]byte("no table "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(dir, []byte("secret"), newLedger(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if there, err := c.table.entries(t.Context(), Key{}, time.Now()); err != nil || len(there) > 0 {
		t.Errorf("%v, %v", there, err)
	}
}

func BenchmarkHit(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := newLedger()
			c := opened(b, l)
			body := strings.Replace(question, "hi", strings.Repeat("word ", size/5), 1)
			r := &storage.Record{ID: uuid.New(), Org: "acme", Dialect: plugins.Chat, Status: plugins.Known(200), AnswerCache: storage.CacheMiss}
			l.records[r.Key()], l.answers[r.ID] = r, storage.Body{Data: []byte(answer)}
			_, leads, _ := c.Answer(b.Context(), asking(body), options)
			leads.Save(r, seen, []byte(answer), false)
			leads.End()
			b.ReportAllocs()
			for b.Loop() {
				q := asking(body)
				if hit, _, _ := c.Answer(b.Context(), q, options); hit == nil {
					b.Fatal("no hit")
				}
			}
		})
	}
}

// Whatever a valid value has in its texts, it is hashed as it is without the space around them.
func FuzzCompact(f *testing.F) {
	for _, seed := range []string{`{"a" : "b\\" , c" }`, "[ 1,\t2 ,\r\n \"\\\\\" , \"\\\\\\\"\"]", ` "" `, `{"\"":[{ } ]}`, `1e5`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want, got bytes.Buffer
		if !plugins.ValidJSON(raw) || json.Compact(&want, raw) != nil {
			t.Skip()
		}
		h := newDigest(nil)
		h.Reset(&got)
		h.compact(raw)
		_ = h.Flush()
		if got.String() != want.String()+"\x00" {
			t.Errorf("%q, want %q", got.String(), want.String())
		}
	})
}
