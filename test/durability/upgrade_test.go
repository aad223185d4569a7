//go:build linux

package durability

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestUpgrade opens the databases of all schemas that were ever released: what
// they had must be there, counted, and more be taken.
func TestUpgrade(t *testing.T) {
	versions, err := filepath.Glob("../../storage/sqlite/testdata/version*.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	if len(versions) == 0 {
		t.Skip("no schema has been released yet")
	}
	for _, version := range versions {
		t.Run(filepath.Base(version), func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			w := newWeir(t, p)
			unpack(t, version, w.database())
			w.start(config{})
			long := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
			first := w.records(long)
			if r := first["ann"]; len(first) != 1 || r == nil || r.Cost == nil || r.Latency == nil || *r.Latency != 1250 {
				t.Errorf("the records of the old database are %+v", first)
			}
			// One more record is another organisation's, and two were lost.
			old := w.settled()
			if old.Recorded != 2 || old.Lost != 2 {
				t.Errorf("the balance of the old database is %+v", old)
			}
			calls := succeed(t, p, w, 20, 0)
			w.flush()
			records := w.records(long)
			for c, id := range calls {
				c.check(t, records[c.name()], id)
			}
			w.kill()
			w.start(config{})
			w.wantBalance(22, old.lost())
		})
	}
}

func unpack(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
