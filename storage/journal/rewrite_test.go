package journal

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/weirhq/weir/storage"
)

// plain is what a sealed file has, decompressed.
func plain(t *testing.T, path string) (all []byte) {
	t.Helper()
	r := new(contentReader)
	if err := r.openFile(path); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for block := range r.index.blocks {
		for i := range frameCount {
			r.reads++
			f, err := r.frame(block, i)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, f.data...)
		}
	}
	return all
}

// The content of some turns leaves a segment, and what others share stays with them. A process
// that is killed at any step finds one of the two files, and no damage.
func TestRewrittenSegment(t *testing.T) {
	killed := errors.New("killed")
	for _, step := range []string{"", "written", "listed", "renamed"} {
		t.Run("killed "+step, func(t *testing.T) {
			dir := t.TempDir()
			b := &backend{}
			j := open(t, b, Options{Dir: dir})
			turns := small.Generate()
			var refs []storage.ContentRef
			canary := []byte("c4nary0123456789abcdef")
			erased := map[uint32]bool{}
			for i := range turns {
				if i%3 == 0 {
					turns[i].Answer = append(slices.Clone(turns[i].Answer), canary...)
				}
				refs = append(refs, appendTurn(t, j, i, &turns[i]))
				if i%3 == 0 {
					erased[refs[i].Ordinal] = true
				}
			}
			seal(t, j, 1)
			alone(j)
			path := segmentPath(dir, refs[0].Segment, sealedSuffix)
			if !bytes.Contains(plain(t, path), canary) {
				t.Fatal("the canary is not in the file before")
			}
			before := sizeOf(t, dir, sealedSuffix)
			old := j.Contents().Reader(storage.WholeContent)
			wantTurn(t, old, 0, refs[0], &turns[0])
			var w rewriter
			number := refs[0].Segment
			switch step {
			case "":
				if err := j.archive.rewrite(t.Context(), &w, number, func(o uint32) bool { return erased[o] }); err != nil {
					t.Fatal(err)
				}
			default:
				next, _, err := w.write(t.Context(), path, func(o uint32) bool { return erased[o] })
				was := j.archive.all()[number]
				next.Newest, next.recordCount, next.Erased = was.Newest, was.recordCount, was.Entries-next.Entries
				if err == nil && step != "written" {
					err = j.archive.replace(number, was, &next)
				}
				if err == nil && step == "renamed" {
					err = os.Rename(path+temporarySuffix, path)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			wantTurn(t, old, 4, refs[4], &turns[4]) // it had the old file open
			old.Close()
			ctx, stop := context.WithCancelCause(t.Context())
			stop(killed)
			j.Close(ctx)
			wantChecked(t, dir, refs)
			j = open(t, b, Options{Dir: dir})
			j.archive.check()
			if step != "" {
				if err := j.archive.rewrite(t.Context(), new(rewriter), number, func(o uint32) bool { return erased[o] }); err != nil {
					t.Fatal(err)
				}
			}
			if losses := j.archive.losses(); len(losses) > 0 {
				t.Errorf("counted as lost: %+v", losses)
			}
			r := j.Contents().Reader(storage.WholeContent)
			defer r.Close()
			for i := range turns {
				if !erased[refs[i].Ordinal] {
					wantTurn(t, r, i, refs[i], &turns[i])
				} else if c, err := r.Content(t.Context(), &storage.Record{Content: refs[i]}); c != nil || err != nil {
					t.Errorf("turn %d: %v, %v", i, c, err)
				}
			}
			if bytes.Contains(plain(t, path), canary) {
				t.Error("the canary is in the file")
			}
			if after := sizeOf(t, dir, sealedSuffix); after > before {
				t.Errorf("%d bytes became %d", before, after)
			}
			if found := files(t, dir, temporarySuffix); len(found) > 0 {
				t.Errorf("%v are left", found)
			}
		})
	}
}
