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
	memory    *Memory
	ctx       context.Context
	announced int64 // bytes, -1 if that is not known
	most      int64 // bytes
	room      int64 // bytes that may come before more is held
	held      Held
	refused   bool
}

// Answer returns the memory of an answer of at most so many bytes, or as many as one answer can
// hold if that is less: an answer that held more than it may would end a process that has no more.
func (m *Memory) Answer(ctx context.Context, announced, most int64) *Answer {
	return &Answer{memory: m, ctx: ctx, announced: announced, most: min(most, m.Largest()/answerCopies), room: freeAnswer}
}

// Grow waits until there is memory for so many bytes of the answer. One that is not small,
// and does not say how long it is, takes what the longest takes: so it never waits for more
// while others wait for what it holds.
func (a *Answer) Grow(n int64) (refused *plugins.Error) {
	if n <= a.room {
		return nil
	}
	if a.refused = max(n, a.announced) > a.most; a.refused {
		Refusals.With(metric.Constant("answer")).Inc()
		return plugins.Upstream("The response is over %d bytes long. With more request_memory, it may have up to 64 MiB.", a.most)
	}
	room := min(max(2*n, a.announced), a.most)
	if n <= a.announced {
		room = a.announced
	} else if answerCopies*room > Small {
		room = a.most
	}
	if a.held.memory == nil {
		a.held, refused = a.memory.Hold(a.ctx, answerCopies*room)
	} else {
		refused = a.held.Resize(a.ctx, answerCopies*room)
	}
	if a.refused = refused != nil; !a.refused {
		a.room = room
	}
	return refused
}

// Refused reports whether there was no memory for the answer, or it was too long. Another answer
// would be as long.
func (a *Answer) Refused() bool { return a.refused }

// Reader returns what reads the answer from in, as far as there is memory for it.
func (a *Answer) Reader(in io.Reader) io.Reader { return &answerReader{a, in, 0} }

// Release gives the memory back.
func (a *Answer) Release() { a.held.Release() }

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
