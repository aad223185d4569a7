//go:build !race

package journal

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/weirhq/weir/storage"
)

func TestFlippedByte(t *testing.T) {
	const n = 5
	data := undrained(t, n)
	ends := frames(t, filepath.Join(writeSegment(t, data), "0000000001.raw"))
	for i := range n {
		heads := ends[i] + headSize + 100 // of head and metadata
		for at := ends[i]; at < heads; at++ {
			flipped := slices.Clone(data)
			flipped[at] ^= 0x40
			b := &backend{}
			j := open(t, b, Options{Dir: writeSegment(t, flipped)})
			flush(t, j)
			eventually(t, "the segment is read to its end", func() bool { return j.Status().PendingBytes == 0 && j.cursorAt() > 1 })
			want := []int{0, 1, 2, 3, 4}
			want = slices.Delete(want, i, i+1)
			for k, id := range b.ids() {
				if len(b.ids()) != n-1 || id != numbered(want[k]) {
					t.Fatalf("byte %d flipped: the backend has %v", at, b.ids())
				}
			}
			// A length that leads beyond the end of the last entry looks as a
			// torn one does.
			if lost := settled(j, storage.LostCorrupt); lost != 1 && i < n-1 {
				t.Fatalf("byte %d flipped: %d losses", at, lost)
			}
			j.Close(t.Context())
		}
	}
}
