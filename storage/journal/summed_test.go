package journal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// No flipped bit of a list is read as another list.
func TestFlippedListsAreNotRead(t *testing.T) {
	for _, list := range []any{
		&sealedText{Segments: map[uint64]sealed{7: {Size: 1 << 20, Newest: 1_790_000_000_000, Entries: 12, Lost: 3}}, Generation: 9, Losses: [][]byte{{1, 2}}},
		&erasuresText{Generation: 4, Erasures: []*Erasure{{ID: uuid.UUID{1}, Org: "acme", Left: map[uint64][]uint32{7: {1, 2}}, Scan: true}}},
	} {
		object, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		read := func(text []byte) (any, error) {
			is := reflect.New(reflect.TypeOf(list).Elem()).Interface()
			return is, parseSummed(text, is)
		}
		for _, text := range [][]byte{object, withSum(object)} { // an earlier version wrote no sum
			if is, err := read(text); err != nil || !reflect.DeepEqual(is, list) {
				t.Fatalf("%s is read as %+v, %v", text, is, err)
			}
		}
		text := withSum(object)
		for at := range len(text) * 8 {
			flipped := []byte(string(text))
			flipped[at/8] ^= 1 << (at % 8)
			if is, err := read(flipped); err == nil && !reflect.DeepEqual(is, list) {
				t.Errorf("%s is read as %+v", flipped, is)
			}
		}
	}
}

// A list whose numbers have changed is not believed: it is damaged, and the segments make another one.
func TestAChangedListIsTold(t *testing.T) {
	b, o, refs, _ := harmed(t)
	path := filepath.Join(o.Dir, sealedName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `"Newest":1`, `"Newest":9`, 1) // long after
	if changed == string(text) {
		t.Fatalf("%s has no times", text)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, b, o)
	if i := balanced(t, j); len(i.Damage) != 1 || i.Damage[0].File != sealedName {
		t.Errorf("of the list this is said: %+v", i.Damage)
	}
	if n := unreadable(t, j, refs); n != 0 {
		t.Errorf("%d bodies cannot be read", n)
	}
}

// A sealed segment whose file is another segment's gives nobody that one's bodies: they count as lost.
func TestAnotherSegmentsFileIsNotRead(t *testing.T) {
	b, o := &backend{}, Options{Dir: t.TempDir(), SegmentBytes: 4 << 10, firstSegment: 1}
	j := open(t, b, o)
	var refs []storage.ContentRef
	for n := range 30 {
		refs = append(refs, appendSample(t, j, n).Content)
	}
	flush(t, j)
	eventually(t, "two segments are sealed", func() bool { return j.Status().SealedSegments > 1 && j.Status().RawSegments < 2 })
	abandon(j)
	sealed, aside := files(t, o.Dir, sealedSuffix), filepath.Join(o.Dir, "aside")
	for _, move := range [][2]string{{sealed[0], aside}, {sealed[1], sealed[0]}, {aside, sealed[1]}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
	}
	checked, err := Check(t.Context(), o.Dir, nil)
	if err != nil || len(checked.Problems) == 0 {
		t.Errorf("Check says %+v, %v", checked, err)
	}
	j = open(t, b, o)
	lost := unreadable(t, j, refs) // which fails if a record has another's body
	var counted int64
	for _, l := range balanced(t, j).Losses {
		if l.Reason == storage.LostContent {
			counted += l.Count
		}
	}
	if lost == 0 || counted != lost {
		t.Errorf("%d bodies cannot be read, and %d count as lost", lost, counted)
	}
}
