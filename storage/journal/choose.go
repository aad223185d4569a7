package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// maxErased is the default of Options.maxErased.
const maxErased = 1_000_000

// ErrManyErased: a filter chooses more records than an erasure can have.
var ErrManyErased = fmt.Errorf("more than %d records match; erase them in parts, such as by created_at", maxErased)

// Choose finds the records that a filter chooses, of an erasure of content those that have some,
// and counts them. Those under hold are the erasure's to erase later. The holds come second: what is
// recorded late may be under hold, and is not chosen if it was not there before.
func (j *Journal) Choose(ctx context.Context, e *Erasure, filter storage.Filter, holds []Hold) ([]Chosen, error) {
	chosen, more, err := j.choose(ctx, j.EachPage, e, filter, holds, func(*storage.Record) bool { return false })
	if more {
		return nil, ErrManyErased
	}
	return chosen, err
}

// pageReader is Journal.EachPage or Journal.eachPage.
type pageReader func(ctx context.Context, org string, f storage.Filter, each func([]*storage.Record) error) error

// choose is Choose without the records that skip reports. It stops after as many as an erasure can have: more is true
// if there may be others.
func (j *Journal) choose(ctx context.Context, read pageReader, e *Erasure, filter storage.Filter, holds []Hold, skip func(*storage.Record) bool) (chosen []Chosen, more bool, err error) {
	eraser, ok := j.backend.(storage.RecordEraser)
	if !ok {
		return nil, false, errors.ErrUnsupported
	}
	err = read(ctx, e.Org, filter, func(records []*storage.Record) error {
		var ids []uuid.UUID
		for _, r := range records {
			if r.Content == (storage.ContentRef{}) && e.Scope == storage.EraseContent || r.CreatedAt > e.RequestedAt || skip(r) {
				continue
			}
			chosen, ids = append(chosen, Chosen{ID: r.ID, Content: r.Content}), append(ids, r.ID)
			e.Records++
			e.Bytes += r.RequestBytes + r.ResponseBytes
		}
		items, _, err := eraser.CountItems(ctx, e.Org, ids)
		e.Items += items
		if more = e.Records > j.options.Load().maxErased; more {
			return cmp.Or(err, ErrManyErased)
		}
		return err
	})
	if err != nil && !errors.Is(err, ErrManyErased) {
		return nil, false, err
	}
	held := make(map[uuid.UUID]bool)
	for _, h := range holds {
		keeps := false
		if err := read(ctx, h.Org, storage.And(h.Filter, filter), func(records []*storage.Record) error {
			for _, r := range records {
				held[r.ID], keeps = true, true
			}
			return nil
		}); err != nil {
			return nil, false, err
		}
		if keeps {
			e.Holds = append(e.Holds, h.ID)
		}
	}
	chosen = slices.DeleteFunc(chosen, func(c Chosen) bool {
		if held[c.ID] {
			e.Held = append(e.Held, c.ID)
		}
		return held[c.ID]
	})
	if len(e.Held) == 0 {
		e.Holds = nil
	}
	return chosen, more, nil
}

// chooseAgain has erasures choose the records that other nodes had not written to the backend before, once they
// have. The error of one does not keep the others.
func (l *erasures) chooseAgain(ctx context.Context) (failed error) {
	for _, e := range l.unfinished() {
		if e.Filter != nil && len(l.j.Unflushed(e)) == 0 {
			failed = errors.Join(failed, l.j.UnderHolds(ctx, []string{e.Org}, func(holds []Hold) error { return l.takeLate(ctx, e, holds) }))
		}
	}
	return failed
}

// takeLate has an erasure take what its filter chooses now and did not before, or the first of it: then it chooses
// again.
func (l *erasures) takeLate(ctx context.Context, e *Erasure, holds []Hold) error {
	filter, err := storage.ParseFilter(e.Filter, storage.RequestResponse)
	if err != nil {
		return err
	}
	encrypted, err := encryptFilter(l.j.nodes.filterKey(), e)
	if err != nil {
		return err
	}
	found := Erasure{Org: e.Org, Scope: max(e.Scope, storage.EraseContent), RequestedAt: e.RequestedAt}
	erased, held := l.records.Load(), make(map[uuid.UUID]bool, len(e.Held))
	for _, id := range e.Held {
		held[id] = true
	}
	chosen, more, err := l.j.choose(ctx, l.j.eachPage, &found, filter, holds, func(r *storage.Record) bool {
		return erased.scope(r.Key()) >= found.Scope || held[r.ID]
	})
	if err != nil {
		return err
	}
	saved := l.change([]*Erasure{e}, func(e *Erasure) {
		e.Items += found.Items // take asks for them
		if err = l.take(e, chosen); err != nil {
			e.Items -= found.Items
			return
		}
		if !more {
			e.Filter, e.EncryptedFilter = nil, encrypted
		}
		e.Records, e.Bytes = e.Records+found.Records, e.Bytes+found.Bytes
		for _, id := range found.Holds {
			if !slices.Contains(e.Holds, id) {
				e.Holds = append(slices.Clone(e.Holds), id)
			}
		}
		e.Held = slices.Concat(e.Held, found.Held)
	})
	return errors.Join(err, saved)
}

// noteJoined notes which nodes have joined since it looked before, and since when they may have calls.
func (l *erasures) noteJoined(states map[uuid.UUID]nodeState) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	joined := make(map[uuid.UUID]storage.Timestamp)
	for id, s := range states {
		if id == l.j.identity || s.JoinedAt == 0 {
			continue
		}
		if joined[id] = s.JoinedAt; l.joined[id] != s.JoinedAt && (l.reopenFrom == nil || s.OldestAt < *l.reopenFrom) {
			l.reopenFrom = new(s.OldestAt)
		}
	}
	l.unsaved = l.unsaved || !maps.Equal(joined, l.joined)
	l.joined = joined
	if len(l.all) == 0 || !l.unsaved {
		return nil
	}
	return l.save()
}

// reopen has erasures choose once more that did not wait for a node which has joined since: it may bring calls from
// before they were requested.
func (l *erasures) reopen() error {
	filterKey := l.j.nodes.filterKey()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reopenFrom == nil || filterKey == nil {
		return nil
	}
	from := *l.reopenFrom
	l.reopenFrom = nil
	if len(l.all) == 0 { // perhaps because the file is lost, which saving would hide
		return nil
	}
	for i, e := range l.all {
		if e.EncryptedFilter == nil || e.RequestedAt < from {
			continue
		}
		next := *e
		next.EncryptedFilter = nil
		if filter, err := decryptFilter(filterKey, e); err != nil {
			l.j.options.logger().Error("an erasure lacks the key of its filter and cannot choose the calls of a node that has joined: request it again", zap.Stringer("erasure", e.ID), zap.Error(err))
		} else {
			next.Filter, next.DoneAt, next.Silent, next.FlushRequest = filter, 0, nil, l.flushRequest+1
			next.Find, next.rowsGone, next.unusedErased = true, false, false // the node may have written a later version
		}
		l.all[i] = &next
	}
	return l.save()
}

// forgetFilters forgets the filters of erasures that are so old that they wait for no node any more.
func (l *erasures) forgetFilters() error {
	l.mu.Lock()
	old := slices.DeleteFunc(slices.Clone(l.all), func(e *Erasure) bool {
		return e.EncryptedFilter == nil || l.j.options.now() < e.RequestedAt+storage.Timestamp(maxAbsence.Milliseconds())
	})
	l.mu.Unlock()
	return l.change(old, func(e *Erasure) { e.EncryptedFilter = nil })
}
