package credits

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/weirhq/weir/plugins"
)

func open(t *testing.T, path string) *Ledger {
	t.Helper()
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func reserve(t *testing.T, l *Ledger, amount plugins.Nanodollars) *Reservation {
	t.Helper()
	r, err := l.Reserve("acme", uuid.New(), amount)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func expect(t *testing.T, l *Ledger, want Balance) {
	t.Helper()
	want.Org = "acme"
	if got := l.Balances(); len(got) != 1 || got[0] != want {
		t.Fatalf("balances %+v, want %+v", got, want)
	}
}

func TestReserveAndCharge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credits")
	l := open(t, path)
	for range 2 { // the second changes nothing
		if err := l.Seed("acme", 100); err != nil {
			t.Fatal(err)
		}
	}
	r := reserve(t, l, 60)
	expect(t, l, Balance{Granted: 100, Reserved: 60})
	if _, err := l.Reserve("acme", uuid.New(), 41); !errors.Is(err, ErrInsufficient) {
		t.Errorf("reserved more than there is: %v", err)
	}
	if err := r.Charge(10); err != nil {
		t.Fatal(err)
	}
	expect(t, l, Balance{Granted: 100, Spent: 10, Reserved: 50})
	if err := r.Charge(25); err != nil { // usage that came later
		t.Fatal(err)
	}
	r.Release()
	r.Release()
	expect(t, l, Balance{Granted: 100, Spent: 25})

	over := reserve(t, l, 75)
	if err := over.Charge(90); err != nil { // more than was reserved
		t.Fatal(err)
	}
	over.Release()
	expect(t, l, Balance{Granted: 100, Spent: 115})
	if err := over.Charge(70); err != nil { // after its end
		t.Fatal(err)
	}
	expect(t, l, Balance{Granted: 100, Spent: 95})
	if err := over.Charge(90); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reserve("acme", uuid.New(), 0); !errors.Is(err, ErrInsufficient) {
		t.Errorf("reserved on a debt: %v", err)
	}
	if _, err := l.Reserve("nobody", uuid.New(), 1); !errors.Is(err, ErrInsufficient) {
		t.Errorf("reserved without a grant: %v", err)
	}
	if err := l.Seed("nobody", 5); err != nil || len(l.Balances()) != 2 {
		t.Errorf("an organisation that was refused once gets no grant: %v", err)
	}
}

// The end of the process at any moment: charges stay, reservations go, and a
// line that was being written is as if it had not been.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credits")
	l := open(t, path)
	if err := l.Grant("acme", 100); err != nil {
		t.Fatal(err)
	}
	r := reserve(t, l, 50)
	if err := r.Charge(20); err != nil {
		t.Fatal(err)
	}
	expect(t, open(t, path), Balance{Granted: 100, Spent: 20})

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
	for cut := whole; cut < len(text); cut++ {
		if err := os.WriteFile(path, text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		again := open(t, path)
		expect(t, again, Balance{Granted: 100})
		if err := again.Grant("acme", 1); err != nil {
			t.Fatal(err)
		}
		expect(t, open(t, path), Balance{Granted: 101})
	}
}

func TestDamageIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credits")
	if err := os.WriteFile(path, []byte("{\"org\":\"acme\",\"grant\":1}\n???\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil {
		t.Error("a damaged file was opened")
	}
}

func TestLongFileIsRewritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credits")
	line := []byte(`{"org":"acme","grant":3,"charge":1}` + "\n")
	n := int64(maxFile/len(line) + 1)
	if err := os.WriteFile(path, bytes.Repeat(line, int(n)), 0o600); err != nil {
		t.Fatal(err)
	}
	want := Balance{Granted: plugins.Nanodollars(3 * n), Spent: plugins.Nanodollars(n)}
	expect(t, open(t, path), want)
	if info, err := os.Stat(path); err != nil || info.Size() > 200 {
		t.Errorf("the file is still %d bytes long: %v", info.Size(), err)
	}
	expect(t, open(t, path), want)
}

// Whatever runs at the same time, no more than the grant is ever reserved.
func TestConcurrentReservations(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "credits"))
	if err := l.Grant("acme", 1000); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var charged, refused atomic.Int64
	for range 20 {
		wg.Go(func() {
			for range 20 {
				r, err := l.Reserve("acme", uuid.New(), 7)
				if err != nil {
					refused.Add(1)
					continue
				}
				if err := r.Charge(5); err != nil {
					t.Error(err)
				}
				charged.Add(5)
				r.Release()
			}
		})
	}
	wg.Wait()
	expect(t, l, Balance{Granted: 1000, Spent: plugins.Nanodollars(charged.Load())})
	if left := 1000 - charged.Load(); left < 0 || left >= 7 || refused.Load() == 0 {
		t.Errorf("%d are left, %d were refused", left, refused.Load())
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("{\"org\":\"acme\",\"grant\":1}\n{\"or"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "credits")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := Open(path); err == nil {
			if err := l.Grant("acme", 1); err != nil {
				t.Error(err)
			}
			_ = l.Close()
			if l, err = Open(path); err != nil {
				t.Errorf("what was written cannot be read: %v", err)
			} else {
				_ = l.Close()
			}
		}
	})
}
