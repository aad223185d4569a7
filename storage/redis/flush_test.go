package redis

import (
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage/credits"
)

// What many calls were charged while Redis was dead is sent in far fewer reads than there
// are commands, since nothing else is spent until then.
func TestWaitingChargesAreSentTogether(t *testing.T) {
	const calls, cost = 200, 5
	server := start(t)
	l := open(t, server.options())
	do(t, l.Grant(t.Context(), "acme", 1_000_000))
	made := make([]credits.Reservation, calls)
	for i := range made {
		made[i] = credits.Reservation{ID: uuid.New(), Org: "acme", Amount: 1000, Holds: []credits.Hold{{Account: acme}}}
		do(t, l.Reserve(t.Context(), made[i]))
	}
	server.kill()
	var charged sync.WaitGroup
	for _, r := range made {
		charged.Go(func() {
			if l.Charge(t.Context(), r, cost) == nil || l.Release(t.Context(), r) == nil {
				t.Error("a dead Redis has taken a charge")
			}
		})
	}
	charged.Wait()
	l.stop() // which would flush too
	<-l.done
	server.run()

	reads := func() (n int) {
		t.Helper()
		eventually(t, func() bool {
			redis := *l.client.server.Load()
			info, err := redis.Do(t.Context(), redis.B().Info().Section("stats").Build()).ToString()
			if found := regexp.MustCompile(`total_reads_processed:(\d+)`).FindStringSubmatch(info); err == nil && found != nil {
				n, err = strconv.Atoi(found[1])
			}
			return err == nil
		})
		return n
	}
	before := reads()
	do(t, l.flush(t.Context()))
	if n := reads() - before; n > calls {
		t.Errorf("%d charges and releases were sent in %d reads", 2*calls, n)
	}
	if b := balance(t, l); b.Spent != calls*cost || b.Reserved != 0 {
		t.Errorf("the balance is %+v, want %d spent", b, calls*cost)
	}
}
