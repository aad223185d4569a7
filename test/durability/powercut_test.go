//go:build linux

package durability

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/tidwall/gjson"
	"golang.org/x/sys/unix"
)

// TestPowerCuts cuts the power again and again, while calls are recorded: the file system forgets
// what was not synced. Nothing older than a second and the time of a sync may be missing, and a
// budget counts what the records cost.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	const late = 3 * time.Second // a second, and a sync on a busy machine
	p := newProvider(t)
	w := newWeir(t, p)
	disk := newDisk(t, filepath.Join(w.dir, "data"))
	counting := config{site: "llm_control", llm: "budget all 100000 total"}
	since, oldest := time.Now(), time.Duration(0)
	all := map[*call]string{}
	var cost int64 // nanodollars
	for range rounds(1, 50) {
		began, made := time.Now(), map[*call]string{} // of this round
		w.start(counting)
		ended := map[*call]time.Time{}
		var clients sync.WaitGroup
		var mu sync.Mutex
		var cut time.Time
		for range 4 {
			clients.Go(func() {
				for {
					c := p.call(chat)
					c.stream, c.sized = true, true
					o := c.do(t.Context(), w)
					now := time.Now()
					mu.Lock()
					if !cut.IsZero() || o.err != nil || !o.ended {
						mu.Unlock()
						return
					}
					ended[c], made[c] = now, o.id
					mu.Unlock()
				}
			})
		}
		time.Sleep(late + rand.N(2*time.Second))
		mu.Lock()
		cut = time.Now()
		disk.cut(t)
		mu.Unlock()
		w.kill()
		clients.Wait()
		disk.repair(t)
		w.start(counting)
		w.flush()
		spent := w.budgetSpent()
		w.flush() // calls of which only the charge has survived have records now
		records := w.records(began)
		if cost += costOf(records); spent != cost {
			t.Errorf("the records cost %d, and the budget counts %d", cost, spent)
		}
		for c, id := range made {
			r := records[c.name()]
			// The start of a stream may be on the disk, and its end not.
			if (r == nil || r.EndState == "interrupted") && cut.Sub(ended[c]) < late {
				oldest = max(oldest, cut.Sub(ended[c]))
				delete(made, c)
				continue
			}
			c.check(t, r, id)
		}
		maps.Copy(all, made)
		w.kill()
	}
	w.start(counting)
	records := w.records(since)
	for c, id := range all {
		c.check(t, records[c.name()], id)
	}
	t.Logf("of %d calls that are recorded none is lost; the oldest that is lost ended %v before the power", len(all), oldest)
}

// budgetSpent is what the budget has counted, in nanodollars.
func (w *weir) budgetSpent() int64 {
	t := w.t
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+w.site+"/v1/key", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	answer, err := exchange(r)
	if err != nil {
		t.Fatal(err)
	}
	counted := gjson.GetBytes(answer, "data.budgets.0.accounts.0")
	if counted.Get("reserved").Num != 0 {
		t.Errorf("the budget has %s", counted.Raw)
	}
	return nanodollars(counted.Get("spent").Num)
}

// costOf adds up what records cost, in nanodollars.
func costOf(records map[string]*record) (cost int64) {
	for _, r := range records {
		if r.Cost != nil {
			cost += nanodollars(*r.Cost)
		}
	}
	return cost
}

// disk is a file system in a file.
type disk struct{ image, dir string }

func newDisk(t *testing.T, dir string) *disk {
	d := &disk{filepath.Join(t.TempDir(), "image"), dir}
	image, err := os.Create(d.image)
	if err != nil {
		t.Fatal(err)
	}
	if err := image.Truncate(512 << 20); err != nil {
		t.Fatal(err)
	}
	image.Close()
	err = exec.Command("mkfs.ext4", "-q", "-F", d.image).Run()
	if err == nil {
		err = d.mount()
	}
	if err != nil {
		t.Skipf("mounting a file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(d.dir, unix.MNT_DETACH) })
	return d
}

func (d *disk) mount() error { return exec.Command("mount", "-o", "loop", d.image, d.dir).Run() }

// cut has the file system forget at once what it has not written to the disk, and refuse
// everything from then on.
// https://man7.org/linux/man-pages/man2/ioctl_fs_ioc_shutdown.2.html
func (d *disk) cut(t *testing.T) {
	const (
		shutdown    = 0x8004587d
		withoutSync = uint32(2)
	)
	dir, err := os.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	flags := withoutSync
	if _, _, failed := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), shutdown, uintptr(unsafe.Pointer(&flags))); failed != 0 {
		t.Fatal(failed)
	}
}

// repair mounts the file system again, as a start of the machine does.
func (d *disk) repair(t *testing.T) {
	if err := errors.Join(unix.Unmount(d.dir, 0), d.mount()); err != nil {
		t.Fatal(err)
	}
}
