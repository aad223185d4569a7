package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// childDir and childFirst tell the test binary that it is to append records to
// the journal in a directory, from this number on, until it is killed.
const (
	childDir   = "WEIR_JOURNAL_TEST_DIR"
	childFirst = "WEIR_JOURNAL_TEST_FIRST"
)

// lines is a backend that outlives a process: a batch is a line of a file.
type lines struct {
	storagetest.Memory
	path string
	file *os.File
	ids  []uuid.UUID
}

type line struct {
	IDs      []uuid.UUID
	Contents []storage.ContentRef
	End      storage.Position
}

func (b *lines) Open(ctx context.Context, h *storage.Host) (p storage.Position, err error) {
	data, err := os.ReadFile(b.path)
	if err != nil && !os.IsNotExist(err) {
		return p, err
	}
	whole := data[:strings.LastIndexByte(string(data), '\n')+1]
	for text := range strings.Lines(string(whole)) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return p, err
		}
		b.ids, p = append(b.ids, l.IDs...), l.End
	}
	if b.file, err = os.OpenFile(b.path, os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return p, err
	}
	if err := b.file.Truncate(int64(len(whole))); err != nil {
		return p, err
	}
	if _, err := b.file.Seek(0, 2); err != nil {
		return p, err
	}
	_, err = b.Memory.Open(ctx, h)
	return p, err
}

func (b *lines) Write(_ context.Context, batch *storage.Batch) error {
	l := line{End: batch.End}
	for _, r := range batch.Records {
		l.IDs, l.Contents = append(l.IDs, r.ID), append(l.Contents, r.Content)
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = b.file.Write(append(text, '\n'))
	}
	return err
}

// child appends, and says so after each: the number, and where the content is.
func child(dir string) {
	first, _ := strconv.Atoi(os.Getenv(childFirst))
	j, err := Open(context.Background(), &lines{path: filepath.Join(dir, "backend")}, Options{Dir: dir, SegmentBytes: 32 << 10})
	if err != nil {
		panic(err)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				n := first + int(next.Add(1))
				r, c := sample(n)
				j.Begin(r)
				if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
					panic(err)
				}
				// One write, so that lines do not mix.
				fmt.Printf("%d %d %d\n", n, r.Content.Segment, r.Content.Ordinal)
			}
		})
	}
	wg.Wait()
}

func TestKill(t *testing.T) {
	t.Parallel() // it waits for processes
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	acked := map[int]storage.ContentRef{}
	const rounds = 20
	for round := range rounds {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s=%d", childFirst, round*1_000_000))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		sc := bufio.NewScanner(out)
		for seen := 0; sc.Scan(); seen++ {
			var n int
			var ref storage.ContentRef
			if _, err := fmt.Sscan(sc.Text(), &n, &ref.Segment, &ref.Ordinal); err != nil {
				break // a line that the kill cut short
			}
			acked[n] = ref
			if seen == 50+20*round {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
	}
	b := &lines{path: filepath.Join(dir, "backend")}
	j := open(t, b, Options{Dir: dir})
	flush(t, j)
	j.Close(t.Context())
	again := &lines{path: b.path}
	j = open(t, again, Options{Dir: dir})
	times := map[uuid.UUID]int{}
	for _, id := range again.ids {
		if times[id]++; times[id] > 1 {
			t.Errorf("record %v is in the backend twice", id)
		}
	}
	for n, ref := range acked {
		if times[numbered(n)] == 0 {
			t.Errorf("record %d is lost", n)
		}
		wantContent(t, j, ref, n)
	}
	i := balanced(t, j)
	if i.Recorded != int64(len(again.ids)) || i.Waiting != 0 || i.InFlight != 0 {
		t.Errorf("%d records, and the reconciliation is %+v", len(again.ids), i)
	}
	// A kill interrupts no more than what was appended at a time.
	if lost := i.Lost(); lost > 4*rounds {
		t.Errorf("%d exchanges count as lost", lost)
	}
	if len(acked) < rounds*50 {
		t.Errorf("only %d records were appended", len(acked))
	}
	t.Logf("%d records, %d acknowledged, %d interrupted, %d kills", len(again.ids), len(acked), i.Lost(), rounds)
}
