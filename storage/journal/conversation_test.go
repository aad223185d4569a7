package journal

import (
	"bytes"
	"errors"
	commandline "flag"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/test/agents"
)

var full = commandline.Bool("full", false, "use 16 conversations of 50 turns, 110 MB of requests")

// appendTurn appends a turn of an agent, and returns where its content is.
func appendTurn(t testing.TB, j *Journal, n int, turn *agents.Turn) storage.ContentRef {
	t.Helper()
	r := &storage.Record{ID: numbered(n), Org: "org", CreatedAt: storage.Millis(time.Now()), Dialect: "openai_chat", EndState: storage.Complete}
	c := &storage.Content{
		Request:  storage.Body{Type: "application/json", Data: turn.Request},
		Response: storage.Body{Type: "application/json", Data: turn.Answer},
	}
	if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
		t.Fatal(err)
	}
	return r.Content
}

// wantTurn fails unless a reader finds the turn of the record n as it was sent.
func wantTurn(t testing.TB, r storage.ContentReader, n int, ref storage.ContentRef, turn *agents.Turn) {
	t.Helper()
	c, err := r.Content(t.Context(), &storage.Record{ID: numbered(n), Org: "org", Content: ref})
	if err != nil || c == nil {
		t.Fatalf("%v: %v, %v", ref, c, err)
	}
	if !bytes.Equal(c.Request.Data, turn.Request) || !bytes.Equal(c.Response.Data, turn.Answer) {
		t.Fatalf("%v: the bodies are not those of the turn", ref)
	}
}

func sizeOf(t testing.TB, dir, suffix string) (n int64) {
	t.Helper()
	for _, path := range files(t, dir, suffix) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// small is a workload for what looks at every byte or turn.
var small = agents.Workload{Agents: 4, Turns: 8, TurnBytes: 5 << 10, Seed: 2}

// What agents send again with every turn is neither written nor kept again, and reads as
// it was sent.
func TestConversationIsKeptOnce(t *testing.T) {
	w := agents.Default
	if !*full {
		w.Agents, w.Turns = 6, 24
	}
	turns := w.Generate()
	dir := t.TempDir()
	j := open(t, &backend{}, Options{Dir: dir})
	var refs []storage.ContentRef
	var requests, fresh int64
	for i := range turns {
		refs = append(refs, appendTurn(t, j, i, &turns[i]))
		requests += int64(len(turns[i].Request))
		fresh += int64(turns[i].New + len(turns[i].Answer))
	}
	read := func(form string) {
		r := j.Contents().Reader(storage.WholeContent)
		defer r.Close()
		for i := range turns {
			wantTurn(t, r, i, refs[i], &turns[i])
		}
		var times []time.Duration
		for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(turns)) {
			began := time.Now()
			if _, err := j.Contents().Content(t.Context(), &storage.Record{ID: numbered(i), Org: "org", Content: refs[i]}); err != nil {
				t.Fatal(err)
			}
			times = append(times, time.Since(began))
		}
		slices.Sort(times)
		t.Logf("%s: one turn is read in %v (median), %v (99 %%)", form, times[len(times)/2], times[len(times)*99/100])
	}
	written := sizeOf(t, dir, rawSuffix)
	read("raw")
	seal(t, j, 1)
	kept := sizeOf(t, dir, sealedSuffix)
	read("sealed")
	t.Logf("%d turns, %d bytes of requests; %d bytes are new with the answers: %d written (%.2f), %d kept (%.2f)",
		len(turns), requests, fresh, written, float64(written)/float64(fresh), kept, float64(kept)/float64(fresh))
	if float64(written) > 1.3*float64(fresh) || float64(kept) > 0.8*float64(fresh) {
		t.Errorf("of %d new bytes, %d are written and %d kept", fresh, written, kept)
	}
}

// Whatever segments the turns of a conversation fall into, also those that are appended at
// the same time, each segment reads without the others, raw and sealed.
func TestEachSegmentReadsAlone(t *testing.T) {
	turns := small.Generate()
	b := &backend{}
	o := Options{Dir: t.TempDir(), SegmentBytes: 128 << 10}
	unblock := b.block() // nothing is sealed meanwhile
	j := open(t, b, o)
	refs := make([]storage.ContentRef, len(turns))
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := worker; i < len(turns); i += 4 {
				refs[i] = appendTurn(t, j, i, &turns[i])
			}
		})
	}
	wait.Wait()
	abandon(j)
	unblock()
	segments := files(t, o.Dir, rawSuffix)
	if len(segments) < 3 {
		t.Fatalf("%d segments are not what is to be tested", len(segments))
	}
	for _, path := range segments {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), rawSuffix), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		alone := Options{Dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(alone.Dir, filepath.Base(path)), data, 0o600); err != nil {
			t.Fatal(err)
		}
		j := open(t, &backend{}, alone)
		read := func() {
			r := j.Contents().Reader(storage.WholeContent)
			defer r.Close()
			for i, ref := range refs {
				if ref.Segment == number {
					wantTurn(t, r, i, ref, &turns[i])
				}
			}
		}
		read()
		seal(t, j, 1)
		read()
	}
}

// A file that ends at any place has all turns that end before.
func TestTurnsBeforeATornTail(t *testing.T) {
	turns := small.Generate()[:12]
	b := &backend{}
	unblock := b.block()
	o := Options{Dir: t.TempDir()}
	j := open(t, b, o)
	var refs []storage.ContentRef
	for i := range turns {
		refs = append(refs, appendTurn(t, j, i, &turns[i]))
	}
	abandon(j)
	unblock()
	path := files(t, o.Dir, rawSuffix)[0]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ends := frames(t, path)
	for cut := ends[3]; cut <= ends[12]; cut += 911 {
		o := Options{Dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(o.Dir, filepath.Base(path)), data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		j := open(t, &backend{}, o)
		r := j.Contents().Reader(storage.WholeContent)
		for i := 0; ends[i+1] <= cut; i++ {
			wantTurn(t, r, i, refs[i], &turns[i])
		}
		r.Close()
		// A new process writes a conversation whole, and not after what is torn.
		again := appendTurn(t, j, 100, &turns[11])
		wantTurn(t, j.Contents().Reader(storage.WholeContent), 100, again, &turns[11])
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// What could not be written is referred to by nobody.
func TestTurnsBehindAFailedWrite(t *testing.T) {
	turns := small.Generate()
	var f faults
	j := open(t, &backend{}, Options{Dir: t.TempDir(), open: f.open})
	refs := map[int]storage.ContentRef{}
	for i := range turns {
		if i%3 == 2 {
			f.room.Store(j.log.active.size + 200)
			f.limited.Store(true)
			r := &storage.Record{ID: numbered(i), Org: "org"}
			if err := j.Append(r, storagetest.Kept(r, &storage.Content{Request: storage.Body{Data: turns[i].Request}})); err == nil {
				t.Fatal("there is no room")
			}
			f.limited.Store(false)
			continue
		}
		refs[i] = appendTurn(t, j, i, &turns[i])
	}
	r := j.Contents().Reader(storage.WholeContent)
	defer r.Close()
	for i, ref := range refs {
		wantTurn(t, r, i, ref, &turns[i])
	}
}

// Organisations share no bytes in a file: the time of a call would tell one of them what
// another has said.
func TestOrganisationsShareNothing(t *testing.T) {
	turn := small.Generate()[0]
	j := open(t, &backend{}, Options{Dir: t.TempDir()})
	size := func(org string) int64 {
		before := sizeOf(t, j.dir, rawSuffix)
		r := &storage.Record{ID: uuid.New(), Org: org}
		if err := j.Append(r, storagetest.Kept(r, &storage.Content{Request: storage.Body{Data: turn.Request}})); err != nil {
			t.Fatal(err)
		}
		return sizeOf(t, j.dir, rawSuffix) - before
	}
	whole := int64(len(turn.Request))
	if first, other := size("one"), size("two"); first < whole || other < whole {
		t.Errorf("requests of %d bytes are %d and %d in the file", whole, first, other)
	}
	if again := size("one"); again > whole/20 {
		t.Errorf("the same request again takes %d bytes", again)
	}
}

// The turns that do not read when a block is damaged are those that count as lost, whoever
// finds the damage, and the others read. A check says as much.
func TestDamageOfSharedBytesLosesWhatItSays(t *testing.T) {
	turns := agents.Workload{Agents: 8, Turns: 12, TurnBytes: 5 << 10, Seed: 3}.Generate()
	b := &backend{}
	o := Options{Dir: t.TempDir()}
	j := open(t, b, o)
	var refs []storage.ContentRef
	for i := range turns {
		refs = append(refs, appendTurn(t, j, i, &turns[i]))
	}
	seal(t, j, 1)
	path := segmentPath(j.dir, refs[0].Segment, sealedSuffix)
	f, size, err := openSealed(path)
	if err != nil {
		t.Fatal(err)
	}
	index, err := readIndex(f, size)
	f.Close()
	if err != nil || len(index.blocks) < 3 {
		t.Fatalf("%d blocks are not what is to be tested, %v", len(index.blocks), err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(o.Dir, sealedName))
	if err != nil {
		t.Fatal(err)
	}
	abandon(j)
	for _, damaged := range [][]int{{0}, {1}, {len(index.blocks) - 1}, {1, len(index.blocks) - 1}, {0, 1}} {
		if err := errors.Join(os.WriteFile(path, whole, 0o600), os.WriteFile(filepath.Join(o.Dir, sealedName), list, 0o600)); err != nil {
			t.Fatal(err)
		}
		for _, n := range damaged {
			flip(t, path, index.blocks[n].offset+100)
		}
		for order, at := range map[string]func(i int) int{
			"ascending":  func(i int) int { return i },
			"descending": func(i int) int { return len(turns) - 1 - i },
		} {
			if err := os.WriteFile(filepath.Join(o.Dir, sealedName), list, 0o600); err != nil {
				t.Fatal(err)
			}
			report, err := Check(t.Context(), o.Dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			j := open(t, b, o)
			lost := int64(0)
			for i := range turns {
				c, err := j.Contents().Content(t.Context(), &storage.Record{ID: numbered(at(i)), Org: "org", Content: refs[at(i)]})
				if err != nil {
					t.Fatal(err)
				}
				if c == nil {
					lost++
				} else if !bytes.Equal(c.Request.Data, turns[at(i)].Request) {
					t.Fatalf("turn %d reads as something else", at(i))
				}
			}
			if lost == 0 || lost == int64(len(turns)) && damaged[0] > 0 {
				t.Errorf("%d of %d turns are lost", lost, len(turns))
			}
			wantLostContent(t, j, lost)
			if report.Contents != int64(len(turns))-lost || len(report.Problems) == 0 {
				t.Errorf("blocks %v, %s: a check finds %d contents and %v, and %d of %d turns are lost", damaged, order, report.Contents, report.Problems, lost, len(turns))
			}
			abandon(j)
		}
	}
}

// A later version of a record shares its request with the one that it replaces, which is
// not sealed.
func TestVersionsShareTheirRequest(t *testing.T) {
	turns := small.Generate()[:6]
	j := open(t, &backend{}, Options{Dir: t.TempDir()})
	var last []storage.ContentRef
	for i := range turns {
		appendTurn(t, j, i, &turns[i])
		last = append(last, appendTurn(t, j, i, &turns[i]))
	}
	seal(t, j, 1)
	r := j.Contents().Reader(storage.WholeContent)
	defer r.Close()
	for i := range turns {
		wantTurn(t, r, i, last[i], &turns[i])
	}
}

// FuzzSplit cuts requests, of which the second may share bytes with the first.
func FuzzSplit(f *testing.F) {
	turns := small.Generate()
	f.Add(turns[0].Request, turns[1].Request)
	f.Add(turns[3].Request, turns[20].Request)
	f.Add(bytes.Repeat([]byte{7}, 30<<10), bytes.Repeat([]byte{7}, 20<<10))
	f.Add([]byte("{}"), []byte(nil))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var s splitter
		table := newChunkTable()
		var written []byte
		for _, request := range [][]byte{first, second, first} {
			s.split(table, "org", request)
			at := len(written)
			own := request[:0:0]
			rest := request
			for _, e := range s.extents {
				own = append(own, rest[:e.literal]...)
				rest = rest[e.literal+e.shared:]
			}
			if len(own) != s.literal || len(rest) > 0 {
				t.Fatalf("%d bytes of %d are its own, and %d are left", len(own), s.literal, len(rest))
			}
			written = append(written, own...)
			table.learn(&s, uint64(at), 0)
			var l layout
			if err := layoutWire.parse(append(appendShared(nil, s.extents, crc32.Checksum(request, castagnoli), uint64(len(request)), uint64(len(own))), own...), &l); err != nil {
				t.Fatal(err)
			}
			got, err := assemble(nil, l.extents, own, func(b []byte, from, size uint64) ([]byte, error) {
				if from+size > uint64(at) {
					t.Fatal("a request refers to what comes after it")
				}
				return append(b, written[from:from+size]...), nil
			})
			if err != nil || !bytes.Equal(got, request) {
				t.Fatalf("%d bytes come back as %d, %v", len(request), len(got), err)
			}
		}
	})
}
