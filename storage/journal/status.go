package journal

import (
	"maps"
	"time"
)

// Status is the state of a journal. Counters grow from the time it was opened.
type Status struct {
	// PendingRecords and PendingBytes wait for the backend.
	PendingRecords, PendingBytes int64
	// MaxBytes is what PendingBytes may come to.
	MaxBytes int64
	// RawSegments are not sealed yet, SealedSegments are; the bytes are those
	// of their files.
	RawSegments, SealedSegments int
	RawBytes, SealedBytes       int64
	// Appended and Drained count entries: versions of records, annotations, losses.
	Appended, Drained int64
	// Lost counts entries that were given up, by the reasons of storage.Loss.
	Lost map[string]int64
	// Err is why the backend refuses writes since FailingSince, nil when it
	// does not.
	Err          error
	FailingSince time.Time
	// Writes times the writes to the segments, Drains those to the backend.
	Writes, Drains Durations
}

// Durations is a number of operations and their time.
type Durations struct {
	Count int64
	Sum   time.Duration
}

func (d *Durations) add(t time.Duration) {
	d.Count++
	d.Sum += t
}

// Status is a snapshot of the journal's state.
func (j *Journal) Status() Status {
	j.mu.Lock()
	s := j.counts
	s.PendingRecords, s.PendingBytes = int64(len(j.pending)), j.pendingBytes
	s.MaxBytes = j.options.MaxBytes
	for _, raw := range j.raw {
		s.RawSegments++
		s.RawBytes += raw.size
	}
	s.Lost = maps.Clone(j.lost)
	s.Err, s.FailingSince = j.err, j.failingSince
	j.mu.Unlock()
	s.SealedSegments, s.SealedBytes = j.sealed.total()
	return s
}

// Fits tells whether so many bytes of entries would not exceed MaxBytes now. It
// is for those who can keep what does not fit, and try again: Append would lose
// it.
func (j *Journal) Fits(bytes int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pendingBytes+bytes <= j.options.MaxBytes
}
