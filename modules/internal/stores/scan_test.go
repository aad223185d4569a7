package stores

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weirhq/weir/plugins"
)

// However many scans an organisation begins, one page of it is read at a time, others have their turn,
// and the organisation is told when too many wait.
func TestScansTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := make(chan struct{})
		var running, refused atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				err := scan(t.Context(), "many", func() error {
					if running.Add(1) > 1 {
						t.Error("two pages of an organisation are read at a time")
					}
					<-page
					running.Add(-1)
					return nil
				})
				if e, ok := errors.AsType[*plugins.Error](err); ok && e.Status == http.StatusTooManyRequests {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if running.Load() != 1 || refused.Load() < 80 {
			t.Errorf("%d pages are read, %d scans are refused", running.Load(), refused.Load())
		}
		all.Go(func() {
			if err := scan(t.Context(), "few", func() error { return nil }); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(page)
		all.Wait()
	})
}
