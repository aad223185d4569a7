package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/sqlite"
)

// colliding writes records of the same ids in several organisations, and knows what must
// be read of each.
type colliding struct {
	*testing.T
	*rand.Rand
	j     *Journal
	want  map[storage.RecordKey]*lastVersion
	began map[storage.RecordKey]*storage.Record // not ended yet
}

// lastVersion is what the last version of a record says.
type lastVersion struct {
	model   string
	request []byte
	quality float64
}

var collidingOrgs = []string{"acme", "globex", "initech"}

func (c *colliding) record() (*storage.Record, *storage.Content) {
	n := c.IntN(20)
	r, content := sample(2) // with a request and an answer
	r.ID, r.Org = numbered(n), collidingOrgs[c.IntN(len(collidingOrgs))]
	r.CreatedAt, r.Model = c.j.options.now(), fmt.Sprint(r.Org, c.Uint32())
	text := bytes.Repeat([]byte("The same words in each request. "), 200) // which chunks share
	content.Request.Data = fmt.Appendf(nil, `{"org":%q,"n":%d,"text":"%s"}`, r.Org, c.Uint32(), text)
	return r, content
}

func (c *colliding) append(r *storage.Record, content *storage.Content) {
	c.Helper()
	if err := c.j.Append(r, storagetest.Kept(r, content)); err != nil {
		c.Fatal(err)
	}
}

// step does one thing that happens in the life of a journal.
func (c *colliding) step() {
	switch r, content := c.record(); c.IntN(5) {
	case 0: // a call that has a version from before its end
		if c.want[r.Key()] != nil { // an id is claimed once
			break
		}
		r.EndState = storage.Interrupted
		c.j.Begin(r)
		c.append(r, content)
		c.began[r.Key()] = r
		c.note(r, content)
	case 1: // and that ends, with another version or without one
		for key, r := range c.began {
			if c.IntN(2) == 0 {
				r.EndState, r.Model = storage.Complete, fmt.Sprint("ended", c.Uint32())
				c.append(r, nil)
				c.want[key].model = r.Model
			}
			c.j.Abandon(r)
			delete(c.began, key)
			break
		}
	case 2:
		for key, v := range c.want {
			v.quality = float64(1 + c.IntN(100))
			if err := c.j.AppendAnnotation(&storage.Annotation{Org: key.Org, RequestID: key.ID, At: r.CreatedAt, Scores: map[string]float64{"quality": v.quality}}); err != nil {
				c.Fatal(err)
			}
			break
		}
	default:
		if c.began[r.Key()] == nil {
			c.append(r, content)
			c.note(r, content)
		}
	}
}

func (c *colliding) note(r *storage.Record, content *storage.Content) {
	v := c.want[r.Key()]
	if v == nil {
		v = new(lastVersion)
		c.want[r.Key()] = v
	}
	v.model, v.request = r.Model, content.Request.Data
}

// check reads each record that has ended, of each organisation.
func (c *colliding) check() {
	c.Helper()
	flush(c, c.j)
	eventually(c, "what ended is in the backend", func() bool {
		c.j.mu.Lock()
		defer c.j.mu.Unlock()
		for key := range c.j.versions.held {
			if c.began[key] == nil {
				return false
			}
		}
		return true
	})
	reader := c.j.Contents().Reader(storage.WholeContent)
	defer reader.Close()
	for key, want := range c.want {
		got, err := c.j.Request(c.Context(), key)
		if c.began[key] != nil {
			continue // the backend may have the call before it
		}
		if err != nil {
			c.Fatalf("record %v: %v", key, err)
		}
		content, err := reader.Content(c.Context(), got)
		if err != nil || content == nil || !bytes.Equal(content.Request.Data, want.request) {
			c.Fatalf("record %v has other content, or none (%t), than %.60s: %v", key, content == nil, want.request, err)
		}
		if got.Org != key.Org || got.Model != want.model || got.Scores["quality"] != want.quality {
			c.Fatalf("record %v is %s of %s with the scores %v, want %s with %v", key, got.Model, got.Org, got.Scores, want.model, want.quality)
		}
	}
	for _, org := range collidingOrgs {
		if r, err := c.j.Request(c.Context(), storage.RecordKey{Org: org, ID: numbered(1000)}); !errors.Is(err, storage.ErrNotFound) {
			c.Fatalf("a record that nobody wrote is %v, %v", r, err)
		}
	}
	if lost := c.j.Status().Lost; len(lost) > 0 {
		c.Fatalf("lost %v", lost)
	}
	balanced(c, c.j)
}

// sealAll closes the active segment and seals every segment that can be.
func (c *colliding) sealAll() {
	c.j.log.turn.Lock()
	if c.j.log.active != nil {
		c.j.log.close(c.j.log.active)
	}
	c.j.log.turn.Unlock()
	flush(c, c.j)
	c.j.maintenance.pass(c.Context())
}

// Organisations choose ids independently. Whatever becomes of the journal, each has the
// records that it wrote, with their bodies and scores.
func TestOrganisationsHaveRecordsOfTheSameIDs(t *testing.T) {
	for name, backend := range map[string]func(dir string) storage.Backend{
		"memory": func(string) storage.Backend { return &storagetest.Memory{} },
		"sqlite": func(dir string) storage.Backend { return sqlite.New(filepath.Join(dir, "weir.db")) },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel() // it waits for the disk
					liveWithCollisions(t, seed, backend(t.TempDir()))
				})
			}
		})
	}
}

func liveWithCollisions(t *testing.T, seed uint64, b storage.Backend) {
	o := Options{Dir: t.TempDir(), SegmentBytes: 64 << 10}
	c := &colliding{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), want: map[storage.RecordKey]*lastVersion{}, began: map[storage.RecordKey]*storage.Record{}}
	c.j = open(t, b, o)
	for range 20 {
		for range 1 + c.IntN(20) {
			c.step()
		}
		switch c.IntN(5) {
		case 0:
			c.sealAll()
		case 1: // a restart
			for _, r := range c.began {
				c.j.Abandon(r)
			}
			clear(c.began)
			if err := c.j.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.j = open(t, b, o)
		case 2: // a crash, at which the last versions count
			c.j.mu.Lock()
			live := maps.Clone(c.j.versions.live)
			c.j.mu.Unlock()
			if len(live) != len(c.began) {
				t.Fatalf("%d exchanges live, want %d", len(live), len(c.began))
			}
			clear(c.began)
			abandon(c.j)
			_ = b.Close()
			c.j = open(t, b, o)
		}
		c.check()
	}
}
