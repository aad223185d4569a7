package journal

import (
	"context"
	"time"

	"github.com/weirhq/weir/storage"
)

// verifyEvery is how often a backend looks for damage in its files.
const verifyEvery = 24 * time.Hour

// verifyDaily has the backend verify its files once a day until ctx ends. The time of the last
// verification is stored, so restarts do not repeat it.
func (w *Witness) verifyDaily(ctx context.Context) {
	verifier, ok := w.j.backend.(storage.Verifier)
	if !ok {
		return
	}
	select {
	case <-w.j.delivery.connected:
	case <-ctx.Done():
		return
	}
	for last := w.j.checkpoints.verified(); ; last = w.j.options.now() {
		since := w.j.options.now().Time().Sub(last.Time())
		if since < 0 { // the clock was put back
			since = verifyEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(verifyEvery - since):
		}
		w.j.options.Load().LowPriority(func() { w.verify(ctx, verifier) })
	}
}

// verify reports the damage that the backend finds.
func (w *Witness) verify(ctx context.Context, verifier storage.Verifier) {
	problems, err := verifier.Verify(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		problems = append(problems, "cannot be verified: "+err.Error())
	}
	for _, found := range problems {
		w.tellDatabase(found)
	}
	if err == nil {
		_ = w.j.checkpoints.saveVerified(w.j.options.now()) // if this fails, the next start verifies again
	}
}

// tellDatabase logs and remembers damage of the database.
func (w *Witness) tellDatabase(found string) { w.Damaged(databaseName(w.j.dir), found) }
