package journal

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// balanced fails unless every exchange is accounted for.
func balanced(t testing.TB, j *Journal) Integrity {
	t.Helper()
	i := j.Integrity()
	if n := i.Unaccounted(); n != 0 {
		t.Errorf("%d exchanges are unaccounted for: %+v", n, i)
	}
	return i
}

// wantIntegrity compares the reconciliation but for times.
func wantIntegrity(t *testing.T, j *Journal, seen, recorded, waiting, flying int64, lost map[string]int64) {
	t.Helper()
	i := balanced(t, j)
	if i.Seen != seen || i.Recorded != recorded || i.Waiting != waiting || i.InFlight != flying {
		t.Errorf("the reconciliation is %+v, want %d seen, %d recorded, %d waiting, %d in flight", i, seen, recorded, waiting, flying)
	}
	got := map[string]int64{}
	for _, l := range i.Losses {
		got[l.Reason] += l.Exchanges
	}
	for reason, n := range lost {
		if got[reason] != n {
			t.Errorf("%d exchanges are lost as %s, want %d: %+v", got[reason], reason, n, i.Losses)
		}
		delete(got, reason)
	}
	for reason, n := range got {
		if n != 0 {
			t.Errorf("%d exchanges are lost as %s", n, reason)
		}
	}
}

func begin(j *Journal, n int) *storage.Record {
	r, _ := sample(n)
	j.Begin(r)
	return r
}

// An exchange counts once, whatever its record goes through, over restarts.
func TestBalance(t *testing.T) {
	b := &backend{}
	o := Options{Dir: t.TempDir()}
	j := open(t, b, o)
	wantIntegrity(t, j, 0, 0, 0, 0, nil)

	unblock := b.block()
	r := begin(j, 1)
	wantIntegrity(t, j, 1, 0, 0, 1, nil)
	for range 3 { // amended
		if err := j.Append(r, nil); err != nil {
			t.Fatal(err)
		}
		wantIntegrity(t, j, 1, 0, 1, 0, nil)
	}
	if err := j.AppendAnnotation(&storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.CreatedAt, Scores: map[string]float64{"a": 1}}); err != nil {
		t.Fatal(err)
	}
	flying := begin(j, 2)
	wantIntegrity(t, j, 2, 0, 1, 1, nil)
	unblock()
	flush(t, j)
	wantIntegrity(t, j, 2, 1, 0, 1, nil)
	if err := j.Append(r, nil); err != nil { // amended when the backend has it
		t.Fatal(err)
	}
	flush(t, j)
	wantIntegrity(t, j, 2, 1, 0, 1, nil)
	j.Abandon(r)
	j.Abandon(flying)
	j.Abandon(flying)
	wantIntegrity(t, j, 2, 1, 0, 0, map[string]int64{storage.LostInterrupted: 1})

	if _, err := b.Prune(t.Context(), 1<<60); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		j.Close(t.Context())
		j = open(t, b, o)
		wantIntegrity(t, j, 2, 1, 0, 0, map[string]int64{storage.LostInterrupted: 1})
	}
	if _, err := b.Prune(t.Context(), 1<<60); err != nil {
		t.Fatal(err)
	}
	if got := settled(j, storage.LostInterrupted); got != 1 {
		t.Errorf("the backend has %d losses, want 1", got)
	}
}

// What was in flight when the process was killed is declared lost at the next
// start, once, with the time from which on something was in flight.
func TestInterrupted(t *testing.T) {
	b := &backend{}
	o := Options{Dir: t.TempDir()}
	for round := range int64(4) {
		j := open(t, b, o)
		wantIntegrity(t, j, 6*round, 4*round, 0, 0, map[string]int64{storage.LostInterrupted: 2 * round})
		for n := range 3 {
			appendSample(t, j, n)
		}
		begin(j, 3)
		appendSample(t, j, 4)
		begin(j, 5)
		flush(t, j)
		wantIntegrity(t, j, 6*(round+1), 4*(round+1), 0, 2, map[string]int64{storage.LostInterrupted: 2 * round})
		abandon(j)
	}
	j := open(t, b, o)
	first, _ := sample(3)
	last, _ := sample(5)
	for _, l := range j.Integrity().Losses {
		if l.From != first.CreatedAt || l.To != last.CreatedAt {
			t.Errorf("the loss is from %d to %d, want %d to %d", l.From, l.To, first.CreatedAt, last.CreatedAt)
		}
	}
	flush(t, j)
	if got := settled(j, storage.LostInterrupted); got != 8 {
		t.Errorf("the backend has %d losses, want 8", got)
	}
}

// The next process knows of losses that the disk had no room for, and why they are lost.
func TestBalanceOfLosses(t *testing.T) {
	var f faults
	b := &backend{}
	dir := t.TempDir()
	j := open(t, b, Options{Dir: dir, open: f.open})
	appendSample(t, j, 0)
	flush(t, j)
	f.limited.Store(true)
	for n := 1; n < 6; n++ {
		r := begin(j, n)
		if err := j.Append(r, nil); err == nil {
			t.Fatal("an append to a full disk succeeds")
		}
	}
	if err := j.AppendAnnotation(&storage.Annotation{}); err == nil {
		t.Fatal("an append to a full disk succeeds")
	}
	wantIntegrity(t, j, 6, 1, 0, 0, map[string]int64{storage.LostJournalFailed: 5})
	if got := j.Status().Lost[storage.LostJournalFailed]; got != 6 {
		t.Errorf("%d entries count as lost, want 6", got)
	}
	abandon(j)
	for range 2 {
		j = open(t, b, Options{Dir: dir, open: f.open})
		wantIntegrity(t, j, 6, 1, 0, 0, map[string]int64{storage.LostJournalFailed: 5})
		if l := j.Integrity().Losses; len(l) != 1 || l[0].Count != 6 || l[0].To != storage.Timestamp(1_700_000_000_005) {
			t.Errorf("the losses are %+v", l)
		}
		abandon(j)
	}
	j = open(t, b, Options{Dir: dir, open: f.open})
	f.limited.Store(false)
	appendSample(t, j, 6)
	flush(t, j)
	j.Reconfigure(Options{MaxBytes: 1})
	if err := j.Append(begin(j, 7), nil); err == nil {
		t.Fatal("an append to a full journal succeeds")
	}
	lost := map[string]int64{storage.LostJournalFailed: 5, storage.LostJournalFull: 1}
	wantIntegrity(t, j, 8, 2, 0, 0, lost)
	j.Close(t.Context())
	j = open(t, b, Options{Dir: dir})
	wantIntegrity(t, j, 8, 2, 0, 0, lost)
	flush(t, j)
	if l := settledLosses(j); len(l) != 2 {
		t.Errorf("the losses are %+v", l)
	}
}

// Damage counts the exchanges that it cost, whether it happens while the journal
// is open or while it is not.
func TestBalanceOfDamage(t *testing.T) {
	for _, abandoned := range []bool{false, true} {
		b := &backend{}
		unblock := b.block()
		dir := t.TempDir()
		j := open(t, b, Options{Dir: dir})
		appendSample(t, j, 99) // the drain is held up with it
		eventually(t, "the drain waits", func() bool { j.mu.Lock(); defer j.mu.Unlock(); return j.delivery.waiting == 0 })
		var twice *storage.Record
		for n := range 5 {
			twice = appendSample(t, j, n)
		}
		if err := j.Append(twice, nil); err != nil {
			t.Fatal(err)
		}
		appendSample(t, j, 5)
		path := files(t, dir, rawSuffix)[0]
		ends := frames(t, path)
		flip(t, path, ends[2]+headSize+5) // the first version of a record
		flip(t, path, ends[6]+headSize+5) // the second one of another
		if abandoned {
			abandon(j)
			unblock()
			j = open(t, b, Options{Dir: dir})
		} else {
			unblock()
		}
		flush(t, j)
		lost := map[string]int64{storage.LostCorrupt: 1}
		wantIntegrity(t, j, 7, 6, 0, 0, lost)
		appendSample(t, j, 7)
		flush(t, j)
		wantIntegrity(t, j, 8, 7, 0, 0, lost)
		if got := settled(j, storage.LostCorrupt); got != 2 {
			t.Errorf("%d entries count as lost, want 2", got)
		}
		j.Close(t.Context())
		j = open(t, b, Options{Dir: dir})
		wantIntegrity(t, j, 8, 7, 0, 0, lost)
	}
}

// The file can be missing, older than the journal, or not what it should be: then
// the journal tells what it can of what began.
func TestExchangeCounterBehind(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"gone":  os.Remove,
		"short": func(path string) error { return os.Truncate(path, 10) },
		"other": func(path string) error { return os.WriteFile(path, make([]byte, 2*counterSize), 0o600) },
		"older": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte{1}, begunAt)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &backend{}
			dir := t.TempDir()
			j := open(t, b, Options{Dir: dir})
			appendSample(t, j, 0)
			flush(t, j)
			unblock := b.block()
			begin(j, 1)
			appendSample(t, j, 2)
			begin(j, 3) // nothing tells of it but the file, and the checkpoint if that is written later
			abandon(j)
			unblock()
			if err := spoil(filepath.Join(dir, counterName)); err != nil {
				t.Fatal(err)
			}
			j = open(t, b, Options{Dir: dir})
			flush(t, j)
			var late int64
			if j.Integrity().Seen == 4 {
				late = 1
			}
			wantIntegrity(t, j, 3+late, 2, 0, 0, map[string]int64{storage.LostInterrupted: 1 + late})
			appendSample(t, j, 4)
			flush(t, j)
			begin(j, 5)
			abandon(j)
			j = open(t, b, Options{Dir: dir})
			wantIntegrity(t, j, 5+late, 3, 0, 0, map[string]int64{storage.LostInterrupted: 2 + late})
		})
	}
}

// A page that is gone must not stop traffic.
func TestExchangeCounterCutShort(t *testing.T) {
	b := &backend{}
	dir := t.TempDir()
	j := open(t, b, Options{Dir: dir})
	appendSample(t, j, 0)
	if err := os.Truncate(filepath.Join(dir, counterName), 0); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 4; n++ {
		appendSample(t, j, n)
	}
	flush(t, j)
	wantIntegrity(t, j, 4, 4, 0, 0, nil)
}

func TestBalanceUnderLoad(t *testing.T) {
	b := &backend{}
	o := Options{Dir: t.TempDir(), SegmentBytes: 32 << 10, MaxBytes: 64 << 10}
	j := open(t, b, o)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				balanced(t, j)
			}
		}
	})
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			for n := range 400 {
				r, content := sample(1000*c + n)
				j.Begin(r)
				if n%50 == 7 {
					j.Abandon(r)
					continue
				}
				if j.Append(r, storagetest.Kept(r, content)) == nil {
					_ = j.Append(r, nil) // lost, perhaps, but not the exchange
				}
			}
		})
	}
	clients.Wait()
	flush(t, j)
	close(stop)
	wg.Wait()
	i := balanced(t, j)
	if i.Seen != 3200 || i.InFlight != 0 || i.Waiting != 0 || i.Recorded+i.Lost() != 3200 {
		t.Errorf("the reconciliation is %+v", i)
	}
	j.Close(context.Background())
	again := open(t, b, o).Integrity()
	if again.Seen != i.Seen || again.Recorded != i.Recorded || again.Lost() != i.Lost() {
		t.Errorf("the reconciliation after a restart is %+v, and was %+v", again, i)
	}
}

func TestIncidents(t *testing.T) {
	loss := func(reason string, count int64, from, to int) storage.Loss {
		second := func(s int) storage.Timestamp {
			return storage.Timestamp(time.Duration(s) * time.Second / time.Millisecond)
		}
		return storage.Loss{Reason: reason, Count: count, Exchanges: count, From: second(from), To: second(to)}
	}
	var got []storage.Loss
	for _, l := range []storage.Loss{
		loss("a", 1, 100, 100), loss("a", 2, 130, 150), loss("b", 1, 131, 131), loss("a", 1, 120, 210),
		loss("a", 5, 271, 280), loss("b", 1, 140, 191), loss("a", 1, 300, 300),
	} {
		got = addIncident(got, l)
	}
	want := []storage.Loss{loss("a", 4, 100, 210), loss("b", 2, 131, 191), loss("a", 6, 271, 300)}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("incident %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	l := &ledger{drained: slices.Clone(want)}
	if l.lossWithdrawn(loss("a", 1, 120, 210), 1); !slices.Equal(l.drained, []storage.Loss{loss("a", 3, 100, 210), want[1], want[2]}) {
		t.Errorf("without a loss of the first incident: %+v", l.drained)
	}
	for _, of := range []storage.Loss{loss("b", 2, 131, 191), loss("a", 6, 271, 300), loss("a", 3, 100, 150)} {
		l.lossWithdrawn(of, 1)
	}
	if len(l.drained) > 0 {
		t.Errorf("without all losses: %+v", l.drained)
	}
	if l.lossWithdrawn(want[0], -1); !slices.Equal(l.drained, want[:1]) {
		t.Errorf("with a loss again: %+v", l.drained)
	}
}
