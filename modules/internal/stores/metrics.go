package stores

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/storage"
)

var (
	storeLabels = []string{"store"}

	pendingRecords = prometheus.NewDesc("weir_journal_pending_records", "Records that wait for the backend.", storeLabels, nil)
	pendingBytes   = prometheus.NewDesc("weir_journal_pending_bytes", "Bytes of the records that wait for the backend.", storeLabels, nil)
	maxBytes       = prometheus.NewDesc("weir_journal_max_bytes", "Bytes of records that may wait for the backend: max_journal.", storeLabels, nil)
	contentBytes   = prometheus.NewDesc("weir_journal_content_bytes", "Size of the segments, by their form.", append(storeLabels, "form"), nil)
	lostRecords    = prometheus.NewDesc("weir_records_lost_total", "Records that were given up, by reason.", append(storeLabels, "reason"), nil)
	failing        = prometheus.NewDesc("weir_store_failing", "1 while the backend refuses writes.", storeLabels, nil)
	journalWrite   = prometheus.NewDesc("weir_journal_write_seconds", "Time of the writes to the journal, a group of records each.", storeLabels, nil)
	storeWrite     = prometheus.NewDesc("weir_store_write_seconds", "Time of the writes to the backend, a batch of records each.", storeLabels, nil)
)

// Collector reads the state of the open stores when it is asked.
type Collector struct{}

func (Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{pendingRecords, pendingBytes, maxBytes, contentBytes, lostRecords, failing, journalWrite, storeWrite} {
		descs <- d
	}
}

func (Collector) Collect(metrics chan<- prometheus.Metric) {
	for _, s := range InUse() {
		j := s.Opened()
		if j == nil {
			continue
		}
		status := j.Status()
		gauge := func(d *prometheus.Desc, v float64, labels ...string) {
			metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{s.name}, labels...)...)
		}
		gauge(pendingRecords, float64(status.PendingRecords))
		gauge(pendingBytes, float64(status.PendingBytes))
		gauge(maxBytes, float64(status.MaxBytes))
		gauge(contentBytes, float64(status.RawBytes), "raw")
		gauge(contentBytes, float64(status.SealedBytes), "sealed")
		if status.Err != nil {
			gauge(failing, 1)
		} else {
			gauge(failing, 0)
		}
		// The first loss must be an increase: a reason begins at 0.
		// https://prometheus.io/docs/practices/instrumentation/#avoid-missing-metrics
		for _, reason := range storage.LossReasons {
			metrics <- prometheus.MustNewConstMetric(lostRecords, prometheus.CounterValue, float64(status.Lost[reason]), s.name, reason)
		}
		metrics <- prometheus.MustNewConstSummary(journalWrite, uint64(status.Writes.Count), status.Writes.Sum.Seconds(), nil, s.name)
		metrics <- prometheus.MustNewConstSummary(storeWrite, uint64(status.Drains.Count), status.Drains.Sum.Seconds(), nil, s.name)
	}
}
