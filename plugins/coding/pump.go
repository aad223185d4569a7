package coding

import (
	"fmt"
	"io"
	"iter"
)

// Pump drives code that pulls its input from a reader with input that is
// pushed. The two are coroutines: when Write returns, all that can be done
// with the bytes so far has been done, on the caller's own stack of calls.
type Pump struct {
	pull   func(r io.Reader) error
	resume func() (struct{}, bool)
	stop   func()
	in     []byte
	err    error
}

// NewPump runs pull from the first write on. The writer must close the pump. The
// reader of pull returns the bytes that were written, and io.EOF after the close. A
// panic of pull is returned as its error.
func NewPump(pull func(r io.Reader) error) *Pump { return &Pump{pull: pull} }

// Write hands b to pull; once pull has returned, it does nothing.
func (p *Pump) Write(b []byte) {
	if p.resume == nil {
		p.resume, p.stop = iter.Pull(p.run)
	}
	p.in = b
	p.resume()
	p.in = nil
}

// Close ends the input and lets pull return.
func (p *Pump) Close() {
	if p.stop != nil {
		p.stop()
	}
}

// Err is the error of pull, nil as long as it has not returned.
func (p *Pump) Err() error { return p.err }

func (p *Pump) run(yield func(struct{}) bool) {
	defer func() {
		if r := recover(); r != nil {
			p.err = fmt.Errorf("panic: %v", r)
		}
	}()
	p.err = p.pull(&pumpReader{p, yield})
}

type pumpReader struct {
	*Pump
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
