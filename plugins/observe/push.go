package observe

import (
	"fmt"
	"io"
	"iter"
)

// pump drives code that pulls its input from a reader with input that is
// pushed. The two are coroutines: when write returns, all that can be done
// with the bytes so far has been done, on the caller's own stack of calls.
type pump struct {
	pull   func(r io.Reader) error
	resume func() (struct{}, bool)
	stop   func()
	in     []byte
	err    error
}

// newPump runs pull, from the first write on; who writes must close. Its
// reader has no bytes beyond those written, and is at its end after close. A
// panic of pull is its error.
func newPump(pull func(r io.Reader) error) *pump { return &pump{pull: pull} }

// write hands b to pull; once pull has returned, it does nothing.
func (p *pump) write(b []byte) {
	if p.resume == nil {
		p.resume, p.stop = iter.Pull(p.run)
	}
	p.in = b
	p.resume()
	p.in = nil
}

// close ends the input and lets pull return.
func (p *pump) close() {
	if p.stop != nil {
		p.stop()
	}
}

func (p *pump) run(yield func(struct{}) bool) {
	defer func() {
		if r := recover(); r != nil {
			p.err = fmt.Errorf("panic: %v", r)
		}
	}()
	p.err = p.pull(&pumpReader{p, yield})
}

type pumpReader struct {
	*pump
	yield func(struct{}) bool
}

func (r *pumpReader) Read(b []byte) (int, error) {
	for len(r.in) == 0 {
		if r.yield == nil || !r.yield(struct{}{}) {
			r.yield = nil
			return 0, io.EOF
		}
	}
	n := copy(b, r.in)
	r.in = r.in[n:]
	return n, nil
}
