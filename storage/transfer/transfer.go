// Package transfer copies the contents of one open store to another, between any
// backends, while both are used, and compares the two.
//
// It keeps no state: what the target has is not copied again, so that an
// interrupted copy continues when it is started again, and a complete copy copies what is
// new since. Everything goes through the journal of the target, which writes it as it does
// traffic: durably, in order, and at least once.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// Options say what is copied.
type Options struct {
	From, To *journal.Journal
	// Window chooses records by when they were created. Tags of sessions, saved views and
	// conversations are copied whatever it is.
	Window storage.Window
	// Verify compares the stores in the end.
	Verify bool
	// Report is called with how far it is, every thousand records.
	Report func(Progress)
}

// reportedRecords is the number of records between two reports of a copy's progress.
const reportedRecords = 1000

// Progress is how far a copy, or a comparison, is.
type Progress struct {
	Comparing    bool              `json:"comparing,omitempty"`
	Organisation string            `json:"organisation"`
	At           storage.Timestamp `json:"at"`
	Records      int64             `json:"records"`
	Counts
}

// Counts are what was written to the target.
type Counts struct {
	Copied      int64 `json:"copied"`      // records that the target lacked, or had in another version
	Annotations int64 `json:"annotations"` // on copied records, and on others
	Bytes       int64 `json:"bytes"`       // of bodies
	// Conversations counts the conversations that the target lacked, or that were changed
	// later in the source.
	Conversations int64 `json:"conversations"`
}

// Summary is what Run has done.
type Summary struct {
	Counts
	// Records and Organisations count what the source has.
	Records       int64 `json:"records"`
	Organisations int   `json:"organisations"`
	// Comparison is nil unless it was asked for.
	Comparison *Comparison `json:"comparison,omitempty"`
}

// rounds bounds how often what differs is copied and compared again: the source may
// have changed between the two.
const rounds = 3

// Run copies, and compares if it shall.
func Run(ctx context.Context, o Options) (*Summary, error) {
	for _, j := range []*journal.Journal{o.From, o.To} {
		if err := j.Connected(ctx); errors.Is(err, storage.ErrRejected) || ctx.Err() != nil {
			return new(Summary), err
		}
	}
	s := new(Summary)
	if err := copyAll(ctx, &o, s); err != nil || !o.Verify {
		return s, err
	}
	for round := 1; ; round++ {
		var err error
		if s.Comparison, err = compareAll(ctx, &o); err != nil || s.Comparison.Same() || round == rounds {
			return s, err
		}
		again := o
		again.Window = s.Comparison.window(o.Window)
		if err := copyAll(ctx, &again, &Summary{Counts: s.Counts}); err != nil {
			return s, err
		}
	}
}

// each calls do with the organisations of the source, once both stores have all that
// was recorded so far.
func each(ctx context.Context, o *Options, do func(org string) error) (int, error) {
	for _, j := range []*journal.Journal{o.From, o.To} {
		if err := j.Flush(ctx); err != nil {
			return 0, err
		}
	}
	orgs, err := available(ctx, func() ([]string, error) { return o.From.Backend().Organisations(ctx) })
	if err != nil {
		return 0, err
	}
	for _, org := range orgs {
		if err := do(org); err != nil {
			return 0, fmt.Errorf("organisation %s: %w", org, err)
		}
	}
	return len(orgs), nil
}

// retryEvery is how often a backend that is out of reach is asked again.
const retryEvery = 500 * time.Millisecond

// available asks a backend until it is within reach.
func available[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for {
		answer, err := ask()
		if !errors.Is(err, storage.ErrUnavailable) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, err
		case <-time.After(retryEvery):
		}
	}
}

func (o *Options) report(p Progress) {
	if o.Report != nil {
		o.Report(p)
	}
}
