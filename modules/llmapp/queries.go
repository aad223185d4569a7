package llmapp

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/lowpriority"
	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/internal/admission"
)

// Turns bound how many queries run at the same time, by key.
type Turns struct {
	Queries     *admission.Turns // what reads any number of records
	Annotations *admission.Turns // what reads or annotates one record
	Streams     *admission.Turns // answers that last
	Trials      *admission.Turns // what keeps values of all records in memory
}

// newTurns bounds the queries. One can keep a processor busy for as long as its deadline: by
// default half of the processors are left to traffic, where there are many, and one key leaves a
// turn to the others.
func newTurns(queries, queriesPerKey int) (Turns, error) {
	if queries < 0 || queriesPerKey < 0 {
		return Turns{}, fmt.Errorf("queries %d, queries_per_key %d: want numbers from 1, or 0 for the default", queries, queriesPerKey)
	}
	running := cmp.Or(queries, max(3, lowpriority.Processors()/2))
	lowpriority.Allow(running)
	return Turns{
		Queries: admission.NewTurns(metric.Constant("queries"), admission.Limits{
			Running: running, RunningPerKey: min(running, cmp.Or(queriesPerKey, (running+1)/2)),
			Waiting: 128, WaitingPerKey: 32, Wait: 5 * time.Second,
		}),
		// What reads or annotates one record is over soon, but for the disk.
		Annotations: admission.NewTurns(metric.Constant("annotations"), admission.Limits{
			Running: 32, RunningPerKey: 2, Waiting: 512, WaitingPerKey: 64, Wait: 5 * time.Second,
		}),
		// A stream lasts as long as its client, and takes a turn for each page.
		Streams: admission.NewTurns(metric.Constant("streams"), admission.Limits{Running: 64, RunningPerKey: 16, Wait: time.Second}),
		// Each takes up to 200 bytes for each of money.MaxTrialSize values.
		Trials: admission.NewTurns(metric.Constant("trials"), admission.Limits{Running: 2, RunningPerKey: 1, Waiting: 32, WaitingPerKey: 4, Wait: 5 * time.Second}),
	}, nil
}
