package embedded

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/testkit/creditstest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
)

// unsynced is a file whose writes nobody waits for.
func unsynced(dir string, limit int64) *file {
	return &file{path: filepath.Join(dir, "credits"), minLimit: limit, logger: zap.NewNop(), sync: func(*os.File) error { return nil }}
}

// settled opens a ledger, and ends what the process before has reserved.
func settled(f *file) (*Ledger, error) {
	l, err := open(f)
	if err != nil {
		return nil, err
	}
	_, err = l.Settle(context.Background(), creditstest.HighestReservation)
	return l, err
}

// memoryDir is a directory on a file system without a disk, where there is one:
// replacing a file there is a hundred times as fast.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "weir-credits")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestLedger(t *testing.T) {
	// So small that the file is replaced by its balances again and again.
	const limit = 300
	root := memoryDir(t)
	places := 0
	creditstest.Run(t, func() creditstest.Place {
		places++
		dir := fmt.Sprintf("%s/%d", root, places)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return creditstest.Place{
			Open: func() (credits.Ledger, error) { return open(unsynced(dir, limit)) },
			Kill: func(l credits.Ledger) { _ = l.(*Ledger).file.f.Close() },
		}
	})
}

// acme are the credits of an organisation.
var acme = credits.Account{Org: "acme"}

func begin(t *testing.T, dir string, limit int64) *Ledger {
	t.Helper()
	l, err := open(unsynced(dir, limit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func wantBalance(t *testing.T, l *Ledger, want credits.Balance) {
	t.Helper()
	want.Account = acme
	if got, err := l.Balance(t.Context(), credits.Hold{Account: acme}); err != nil || got != want {
		t.Fatalf("the balance is %+v, %v; want %+v", got, err, want)
	}
}

// While the disk refuses writes nothing new is reserved, nothing is granted, and a
// charge is kept until the disk takes it.
func TestDiskRefusesWrites(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	l := begin(t, dir, 1<<20)
	r := credits.Reservation{ID: uuid.New(), Org: "acme", Amount: 10, Holds: []credits.Hold{{Account: acme}}}
	must(t, l.Grant(ctx, "acme", 100), l.Reserve(ctx, r))
	writable := l.file.f
	refusing, err := os.Open(l.file.path)
	must(t, err)
	l.file.f = refusing

	other := credits.Reservation{ID: uuid.New(), Org: "acme", Amount: 10, Holds: []credits.Hold{{Account: acme}}}
	for name, err := range map[string]error{
		"Charge":  l.Charge(ctx, r, 5),
		"Reserve": l.Reserve(ctx, other),
		"Grant":   l.Grant(ctx, "acme", 50),
	} {
		if !errors.Is(err, credits.ErrUnavailable) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	wantBalance(t, l, credits.Balance{Granted: 100, Spent: 5, Reserved: 5})
	if _, synced := l.sync(); synced {
		t.Error("a charge that waits passes for one on the disk")
	}

	l.file.f = writable
	must(t, refusing.Close(), l.Reserve(ctx, other))
	wantBalance(t, l, credits.Balance{Granted: 100, Spent: 5, Reserved: 15})
	wantBalance(t, begin(t, dir, 1<<20), credits.Balance{Granted: 100, Spent: 5})
}

// A grant that is not on disk is no grant, and leaves nothing in the file.
func TestFailedGrantLeavesNothing(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	l := begin(t, dir, 1<<20)
	synced := l.file.sync
	l.file.sync = func(*os.File) error { return errors.New("input/output error") }
	if err := l.Grant(ctx, "an organisation with a long name", 50); !errors.Is(err, credits.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
	l.file.sync = synced
	must(t, l.Grant(ctx, "acme", 1))
	if info, err := os.Stat(l.file.path); err != nil || info.Size() != l.file.size {
		t.Errorf("the file has %d bytes, want %d: %v", info.Size(), l.file.size, err)
	}
	again, err := begin(t, dir, 1<<20).Balances(ctx)
	if want := []credits.Balance{{Account: acme, Granted: 1}}; err != nil || !slices.Equal(again, want) {
		t.Errorf("the balances are %+v, %v; want %+v", again, err, want)
	}
}

// However many charges there are, the file stays small while Weir runs.
func TestFileIsBounded(t *testing.T) {
	const limit, charges, line = 4096, 2000, 300
	ctx := t.Context()
	dir := t.TempDir()
	l := begin(t, dir, limit)
	must(t, l.Grant(ctx, "acme", 1_000_000))
	for range charges {
		r := credits.Reservation{ID: uuid.New(), Org: "acme", Amount: 7, Lost: 7, Holds: []credits.Hold{{Account: acme}}}
		must(t, l.Reserve(ctx, r), l.Charge(ctx, r, 3), l.Release(ctx, r))
		if info, err := os.Stat(l.file.path); err != nil || info.Size() > limit+line {
			t.Fatalf("the file has %d bytes: %v", info.Size(), err)
		}
	}
	if l.file.state.Generation < 10 {
		t.Errorf("the generation is %d", l.file.state.Generation)
	}
	wantBalance(t, begin(t, dir, limit), credits.Balance{Granted: 1_000_000, Spent: 3 * charges})
}

// A budget without an end counts so many values and no more: who has an account goes on, and
// one that counts nothing makes room.
func TestValuesAreBounded(t *testing.T) {
	ctx := t.Context()
	l := begin(t, t.TempDir(), 1<<20)
	l.maxValues = 2
	reserve := func(value string, amount plugins.Nanodollars) (credits.Reservation, error) {
		of := credits.Account{Org: "acme", Budget: "run", Value: value}
		r := credits.Reservation{ID: uuid.New(), Org: "acme", Amount: amount, Holds: []credits.Hold{{Account: of, Limit: 100}}}
		return r, l.Reserve(ctx, r)
	}
	first, err := reserve("a", 10)
	must(t, err, l.Charge(ctx, first, 10))
	second, err := reserve("b", 10)
	must(t, err)
	if _, err := reserve("c", 10); !errors.Is(err, credits.ErrFull) {
		t.Errorf("one more value: %v", err)
	}
	_, err = reserve("a", 10)
	must(t, err, l.Release(ctx, second))
	_, err = reserve("c", 10)
	must(t, err)
}

// A value of which nothing is counted has no account after a restart, though calls held some of
// it when the file was replaced by its balances.
func TestEmptyValuesAreNotKept(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	l := begin(t, dir, 1) // replaces the file before each line
	of := credits.Account{Org: "acme", Budget: "run", Value: "a"}
	r := credits.Reservation{ID: uuid.New(), Org: "acme", Amount: 10, Lost: 10, Holds: []credits.Hold{{Account: of, Limit: 100}}}
	must(t, l.Grant(ctx, "acme", 100), l.Reserve(ctx, r), l.Grant(ctx, "acme", 100), l.Grant(ctx, "acme", 100), l.Release(ctx, r))
	again := begin(t, dir, 1)
	if counted, err := again.Counted(ctx, credits.Hold{Account: of}); err != nil || len(counted) > 0 {
		t.Errorf("%+v is counted, %v", counted, err)
	}
	wantBalance(t, again, credits.Balance{Granted: 300})
}

func TestGrantsStayInRange(t *testing.T) {
	ctx := t.Context()
	l := begin(t, t.TempDir(), 1<<20)
	must(t, l.Grant(ctx, "acme", math.MaxInt64-1))
	if err := l.Grant(ctx, "acme", 2); err == nil {
		t.Error("a sum out of range was granted")
	}
	wantBalance(t, l, credits.Balance{Granted: math.MaxInt64 - 1})
}

// Calls are charged while an administrator grants.
func TestGrantsBesideCharges(t *testing.T) {
	ctx := t.Context()
	l := begin(t, memoryDir(t), 1<<20)
	const calls, times = 4, 2000
	must(t, l.Grant(ctx, "acme", calls*times))
	var clients sync.WaitGroup
	for range calls {
		r := credits.Reservation{ID: uuid.New(), Org: "acme", Amount: times, Lost: times, Holds: []credits.Hold{{Account: acme}}}
		must(t, l.Reserve(ctx, r))
		clients.Go(func() {
			for total := range plugins.Nanodollars(times) {
				if err := l.Charge(ctx, r, total+1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range times {
		must(t, l.Grant(ctx, "acme", 1))
	}
	clients.Wait()
	wantBalance(t, l, credits.Balance{Granted: (calls + 1) * times, Spent: calls * times})
}

func BenchmarkCall(b *testing.B) {
	ctx := b.Context()
	l, err := Open(b.TempDir(), nil, zap.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close(ctx)
	must(b, l.Grant(ctx, "acme", math.MaxInt64/2))
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r := credits.Reservation{ID: uuid.New(), Org: "acme", Amount: 7, Lost: 7, Holds: []credits.Hold{{Account: acme}}}
			must(b, errors.Join(l.Reserve(ctx, r), l.Charge(ctx, r, plugins.Nanodollars(3)), l.Release(ctx, r)))
		}
	})
}
