package journal

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/storage"
)

// What relocations say of an address is what was added first, and all that was added
// between two others can be found.
func TestRelocations(t *testing.T) {
	const size = 500
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var all relocations
		var want [size]uint64 // by address, 0 where nothing stands
		for to := uint64(1); to < 40*size; to += size {
			from, length := r.Uint64N(size-1), 1+r.Uint64N(60)
			for _, p := range all.appendPieces(nil, from, min(length, size-from)) {
				for i := range p.size {
					if got := p.to + i; p.isSealed && got != want[p.from+i] || !p.isSealed && want[p.from+i] != 0 {
						t.Fatalf("address %d is at %d (%t), want %d", p.from+i, got, p.isSealed, want[p.from+i])
					}
				}
				if p.isSealed {
					continue
				}
				p.to = to + p.from
				for i := range p.size {
					want[p.from+i] = p.to + i
				}
				all = all.add(p.relocation)
			}
			// What is there already stays where it is.
			all = all.add(relocation{from, min(length, size-from), 1 << 40})
		}
		for i := 1; i < len(all); i++ {
			if all[i-1].from+all[i-1].size > all[i].from {
				t.Fatalf("%+v overlaps %+v", all[i-1], all[i])
			}
		}
	}
}

// A request that shares bytes with a damaged one is sealed without them being trusted:
// it is lost where it needs what is damaged, and else reads as it was sent.
func TestSealingARequestThatSharesDamagedBytes(t *testing.T) {
	turns := small.Generate()
	b := &backend{}
	j := open(t, b, Options{Dir: t.TempDir()})
	var refs []storage.ContentRef
	for i := range turns {
		refs = append(refs, appendTurn(t, j, i, &turns[i]))
	}
	flush(t, j)
	path := segmentPath(j.dir, 1, rawSuffix)
	flip(t, path, frames(t, path)[7]-1-int64(len(turns[6].Answer))-1000) // among the bytes of a request
	seal(t, j, 1)
	r := j.Contents().Reader(storage.WholeContent)
	defer r.Close()
	lost := int64(0)
	for i, ref := range refs {
		c, err := r.Content(t.Context(), &storage.Record{Content: ref})
		switch {
		case err != nil:
			t.Fatal(err)
		case c == nil:
			lost++
		case !bytes.Equal(c.Request.Data, turns[i].Request):
			t.Errorf("turn %d reads as something else", i)
		}
	}
	if lost < 2 || lost == int64(len(turns)) {
		t.Errorf("%d of %d turns are lost", lost, len(turns))
	}
	wantLostContent(t, j, lost)
}
