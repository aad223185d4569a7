package admission

import (
	"context"
	"io"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
)

const (
	// freeAnswer is up to how many bytes of an answer take no memory of others.
	freeAnswer = 64 << 10
	// answerCopies is how many bytes an answer takes for each that has come: buffers double.
	answerCopies = 2
)

// Answer is the memory that the answer of a provider takes while it is read whole. A client
// chooses how long answers are, as by the number of texts to embed. Release must follow.
type Answer struct {
	memory      *Memory
	ctx         context.Context
	announced   int64 // bytes, -1 if that is not known
	limit       int64 // bytes
	granted     int64 // bytes that may come before more is held
	reservation Reservation
	refused     bool
}

// Answer returns the memory of an answer of at most limit bytes, or of the largest answer that the
// memory allows: a larger one could end the process. announced is the length in its header, -1 for none.
func (m *Memory) Answer(ctx context.Context, announced, limit int64) *Answer {
	return &Answer{memory: m, ctx: ctx, announced: announced, limit: min(limit, m.Largest()/answerCopies), granted: freeAnswer}
}

// Grow waits until there is memory for n bytes of the answer. An answer of unknown length that is not
// small takes the memory of the longest at once. So it never waits for more while others wait for its
// memory.
func (a *Answer) Grow(n int64) (refused *plugins.Error) {
	if n <= a.granted {
		return nil
	}
	if a.refused = max(n, a.announced) > a.limit; a.refused {
		Refusals.With(metric.Constant("answer")).Inc()
		return plugins.Upstream("The response is over %d bytes long. With more request_memory, it may have up to 64 MiB.", a.limit)
	}
	granted := min(max(2*n, a.announced), a.limit)
	if n <= a.announced {
		granted = a.announced
	} else if answerCopies*granted > Small {
		granted = a.limit
	}
	if a.reservation.memory == nil {
		a.reservation, refused = a.memory.Hold(a.ctx, answerCopies*granted)
	} else {
		refused = a.reservation.Resize(a.ctx, answerCopies*granted)
	}
	if a.refused = refused != nil; !a.refused {
		a.granted = granted
	}
	return refused
}

// Refused reports whether there was no memory for the answer, or it was too long. Another answer
// would be as long.
func (a *Answer) Refused() bool { return a.refused }

// Reader returns what reads the answer from in, as far as there is memory for it.
func (a *Answer) Reader(in io.Reader) io.Reader { return &answerReader{a, in, 0} }

// Release gives the memory back.
func (a *Answer) Release() { a.reservation.Release() }

type answerReader struct {
	*Answer
	in io.Reader
	n  int64
}

func (r *answerReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.n += int64(n)
	if refused := r.Grow(r.n); refused != nil {
		return n, refused
	}
	return n, err
}
