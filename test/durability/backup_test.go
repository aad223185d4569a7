//go:build linux

package durability

import (
	"os"
	"testing"
	"time"
)

// TestBackup copies the files of a store that is in use, as docs/operations.md says,
// and starts another Weir on the copy: what had been recorded must be there, bodies
// too, and more be taken.
func TestBackup(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(config{})
	since := time.Now()
	before := succeed(t, p, w, 40, 0)

	restored := newWeir(t, p)
	meanwhile := make(chan struct{})
	go func() {
		defer close(meanwhile)
		succeed(t, p, w, 40, 0)
	}()
	db := w.open("mode=ro")
	if _, err := db.Exec("VACUUM INTO ?", restored.database()); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if err := os.CopyFS(restored.database()+".segments", os.DirFS(w.database()+".segments")); err != nil {
		t.Fatal(err)
	}
	<-meanwhile

	restored.start(config{})
	succeed(t, p, restored, 10, 0)
	restored.flush()
	records := restored.records(since)
	for c, id := range before {
		c.check(t, records[c.name()], id)
	}
}
