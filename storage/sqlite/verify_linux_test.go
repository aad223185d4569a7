package sqlite

import (
	"testing"
	"time"
)

// Verify rests most of the time, so that it leaves the processor and the disk to traffic.
func TestVerifyRests(t *testing.T) {
	b := smallChunks(t)
	if _, err := b.Open(t.Context(), hostOf(noContents{})); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	traffic := newTraffic(2000)
	for range 2 {
		write(t, b, traffic.batch(1000))
	}
	began, worked := time.Now(), cpuTime()
	if problems, err := b.Verify(t.Context()); err != nil || problems != nil {
		t.Fatalf("Verify says %q, %v", problems, err)
	}
	took := time.Since(began)
	if worked = cpuTime() - worked; worked > took/2 {
		t.Errorf("Verify worked %v of %v, want a quarter", worked, took)
	}
}
