package journal

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

func TestBodyThatLooksLikeAnEntryIsNone(t *testing.T) {
	b := &backend{}
	unblock := b.block()
	defer unblock()
	dir := t.TempDir()
	j := open(t, b, Options{Dir: dir})
	// A whole entry of another segment, with the ordinal that comes next.
	var forged draft
	r, _ := sample(66)
	encode(&forged, kindRecord, recordWire, r)
	forged.finish(1, 0)
	first, _ := sample(0)
	if err := j.Append(first, storagetest.Kept(first, &storage.Content{Request: storage.Body{Data: forged.buf}})); err != nil {
		t.Fatal(err)
	}
	appendSample(t, j, 1)
	abandon(j)
	path := files(t, dir, rawSuffix)[0]
	flip(t, path, int64(headerSize)+headSize+3)
	unblock()
	j = open(t, b, Options{Dir: dir})
	flush(t, j)
	if got := b.ids(); len(got) != 1 || got[0] != numbered(1) {
		t.Errorf("the backend has %v", got)
	}
}

// memory is a sealed file in memory.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// FuzzReader gives arbitrary bytes to what reads files.
func FuzzReader(f *testing.F) {
	var raw []byte
	for n := range 4 {
		r, c := sample(n)
		d := new(draft)
		encode(d, kindRecord, recordWire, r)
		d.content(c, nil)
		d.finish(uint32(n), 7)
		for _, p := range d.appendPieces(nil) {
			raw = append(raw, p...)
		}
	}
	f.Add(raw)
	var sealed bytes.Buffer
	var w sealedWriter
	w.reset(&sealed)
	for n := range 4 {
		r, c := sample(n)
		item := sealedRecordWire.append(nil, &sealedRecord{recordWire.append(nil, r), recordCount{1, 1}})
		w.add(uint32(n), c, nil, item)
	}
	w.finish(1)
	f.Add(sealed.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		sc := &scanner{r: r, salt: 7, end: int64(len(b)), size: headWindow}
		for at := int64(0); ; {
			e, err := sc.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e.offset < at || e.end() > int64(len(b)) || cap(sc.window) > len(b)+headWindow {
				t.Fatalf("entry %+v of %d bytes", e, len(b))
			}
			at = e.end()
			var r record
			recordWire.parse(e.metadata, &r)
		}
		if index, err := readIndex(r, int64(len(b))); err == nil {
			x := contentReader{j: newJournal(nil, Options{}), parts: storage.WholeContent, segment: 1, file: memory{r}, index: index}
			for _, ordinal := range []uint32{0, 3, 1 << 31} {
				if _, err := x.readSealed(ordinal); err != nil && !errors.Is(err, errDamaged) {
					t.Fatal(err)
				}
			}
			again := rebuild{reader: x}
			for again.block < len(index.blocks) {
				again.read(x.j, &batch{began: map[storage.RecordKey]bool{}})
			}
		}
		var x items
		if x.data = b; x.locate() == nil {
			x.find(3)
		}
	})
}
