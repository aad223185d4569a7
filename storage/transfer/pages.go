package transfer

import "context"

// pages passes through what a store has of something, in the order that all stores have it
// in. The next page is read while one is passed.
type pages[T any] struct {
	order func(a, b *T) int
	page  []*T
	next  chan page[T]
	stop  context.CancelFunc
	// turn, if not nil, is called with each page before it is passed.
	turn func([]*T)
}

type page[T any] struct {
	elements []*T
	err      error
}

// readPages begins to read. read answers the page behind the one before, and whether there
// may be more. What is returned must be closed.
func readPages[T any](ctx context.Context, order func(a, b *T) int, read func(context.Context) (elements []*T, more bool, err error)) *pages[T] {
	ctx, stop := context.WithCancel(ctx)
	p := &pages[T]{order: order, next: make(chan page[T]), stop: stop}
	go func() {
		defer close(p.next)
		for more := true; more; {
			elements, err := available(ctx, func() (elements []*T, err error) {
				elements, more, err = read(ctx)
				return elements, err
			})
			select {
			case p.next <- page[T]{elements, err}:
			case <-ctx.Done():
			}
			more = more && err == nil && ctx.Err() == nil
		}
	}()
	return p
}

// close returns when nothing is read any more.
func (p *pages[T]) close() {
	p.stop()
	for range p.next {
	}
}

// peek is the next one, nil behind the last one. It stays the next until skip.
func (p *pages[T]) peek(ctx context.Context) (*T, error) {
	for len(p.page) == 0 {
		next, more := <-p.next
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !more || next.err != nil {
			return nil, next.err
		}
		if p.page = next.elements; p.turn != nil {
			p.turn(p.page)
		}
	}
	return p.page[0], nil
}

func (p *pages[T]) skip() { p.page = p.page[1:] }

// find is the one in the place of another store's, nil if there is none. What comes before
// is passed, and given to passed.
func (p *pages[T]) find(ctx context.Context, like *T, passed func(*T)) (*T, error) {
	for {
		next, err := p.peek(ctx)
		if next == nil || err != nil {
			return nil, err
		}
		order := p.order(next, like)
		if order > 0 {
			return nil, nil
		}
		p.skip()
		if order == 0 {
			return next, nil
		}
		if passed != nil {
			passed(next)
		}
	}
}
