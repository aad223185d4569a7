package llmapp

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/lowpriority"
)

// turns bound how many queries run at the same time.
type turns struct{ queryTurns, recordTurns, streamTurns *admission.Turns }

// provisionQueries sets up whose turn it is to ask. A query can keep a processor
// busy for as long as its deadline: by default half of them are left to traffic, where
// there are many, and one key leaves a turn to the others.
func (a *App) provisionQueries() error {
	if a.Queries < 0 || a.QueriesPerKey < 0 {
		return fmt.Errorf("queries %d, queries_per_key %d: want numbers from 1, or 0 for the default", a.Queries, a.QueriesPerKey)
	}
	running := cmp.Or(a.Queries, max(3, lowpriority.Processors()/2))
	lowpriority.Allow(running)
	a.queryTurns = admission.NewTurns(metric.Constant("queries"), admission.Limits{
		Running: running, RunningPerKey: min(running, cmp.Or(a.QueriesPerKey, (running+1)/2)),
		Waiting: 128, WaitingPerKey: 32, Wait: 5 * time.Second,
	})
	// What reads or annotates one record is over soon, but for the disk.
	a.recordTurns = admission.NewTurns(metric.Constant("annotations"), admission.Limits{
		Running: 32, RunningPerKey: 2, Waiting: 512, WaitingPerKey: 64, Wait: 5 * time.Second,
	})
	// A stream lasts as long as its client, and takes a turn for each page.
	a.streamTurns = admission.NewTurns(metric.Constant("streams"), admission.Limits{Running: 64, RunningPerKey: 16, Wait: time.Second})
	return nil
}

// StreamTurns admit answers that last, by key.
func (a *App) StreamTurns() *admission.Turns { return a.streamTurns }

// QueryTurns admit what reads any number of records, by key.
func (a *App) QueryTurns() *admission.Turns { return a.queryTurns }

// RecordTurns admit what reads or annotates one record, by key.
func (a *App) RecordTurns() *admission.Turns { return a.recordTurns }
