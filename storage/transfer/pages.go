package transfer

import "context"

// pages passes through the elements of a kind that a store has, in an order that all stores
// have. The next page is read while a page is passed.
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

// readPages begins to read. Each call of read answers the next page, and whether there may be
// more pages. The result must be closed.
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

// peek returns the next element, nil after the last element. The element stays the next until
// skip.
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

// find returns the element at the place of like, an element of another store; nil if there is no
// element at the place. Elements before the place are skipped, and given to passed.
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
