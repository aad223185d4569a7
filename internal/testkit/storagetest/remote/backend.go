// Package remote injects faults into a storage backend, to make it remote in every respect:
// it may be down, has no transaction, takes a batch in part or twice, loses acknowledgements,
// keeps bodies itself, has many processes write to it, and shows what it has taken after a
// while. Queries are answered by storagetest.Memory.
package remote

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

var (
	errRefused        = errors.New("the connection was refused")
	errTorn           = errors.New("the connection broke within the batch")
	errUnacknowledged = errors.New("the acknowledgement was lost")
	errTooMany        = fmt.Errorf("too many entries: %w", storage.ErrTooLarge)
)

// Backend is a process's connection to a Server.
type Backend struct {
	// Memory has what the entries of done add up to.
	storagetest.Memory
	dir    dir
	faults Faults

	mu       sync.Mutex
	contents storage.Contents // of the host, nil when closed
	done     map[string]bool
	stored   sync.Map // keptContent by storage.RecordKey
	// notes are the annotations of records. Annotations may come before their records.
	notes []*storage.Annotation
}

type keptContent struct {
	content
	createdAt storage.Timestamp
}

// New makes a backend of the server in a directory, without calling Open.
func New(path string) *Backend {
	b := &Backend{dir: dir(path)}
	b.Refresh = b.read
	return b
}

// Open connects. The server keeps no positions.
func (b *Backend) Open(ctx context.Context, h *storage.Host) (p storage.Position, err error) {
	if _, err = b.dir.up(); err != nil {
		return p, err
	}
	if b.faults, err = b.dir.faults(); err != nil {
		return p, err
	}
	if err := sleep(ctx, b.faults.Latency); err != nil {
		return p, err
	}
	if rand.Float64() < b.faults.Refused {
		return p, errRefused
	}
	if err := b.replace(h.Journal.String()+openedName, nil); err != nil {
		return p, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.contents, b.done, b.notes = h.Contents, make(map[string]bool), nil
	b.stored.Clear()
	b.Forget()
	_, err = b.Memory.Open(ctx, &storage.Host{Contents: visibleContents{b}})
	return h.Position, err
}

// Limits wants small batches.
func (*Backend) Limits() storage.Limits {
	return storage.Limits{Entries: 64, Delay: 10 * time.Millisecond}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err()
}

// Write adds a batch with its content, in two parts.
func (b *Backend) Write(ctx context.Context, batch *storage.Batch) error {
	if limit := b.faults.Entries; limit > 0 && len(batch.Records)+len(batch.Annotations) > limit {
		return errTooMany
	}
	start, err := b.dir.up()
	if err != nil {
		return err
	}
	entry, err := b.entry(ctx, batch)
	if err != nil {
		return err
	}
	if err := sleep(ctx, b.faults.Latency); err != nil {
		return err
	}
	first, second, half := *entry, *entry, len(batch.Records)/2
	first.Records, first.Contents, first.Notes = entry.Records[:half], entry.Contents[:half], nil
	second.Records, second.Contents = entry.Records[half:], entry.Contents[half:]
	if err := b.dir.add(start, &first); err != nil {
		return err
	}
	if err := sleep(ctx, b.faults.Gap); err != nil {
		return err
	}
	if rand.Float64() < b.faults.Torn {
		return errTorn
	}
	if err := b.dir.add(start, &second); err != nil {
		return err
	}
	if rand.Float64() < b.faults.Repeated {
		if err := b.dir.add(start, entry); err != nil {
			return err
		}
	}
	if rand.Float64() < b.faults.Unacknowledged {
		return errUnacknowledged
	}
	return nil
}

// entry has all of a batch.
func (b *Backend) entry(ctx context.Context, batch *storage.Batch) (*entry, error) {
	b.mu.Lock()
	contents := b.contents
	b.mu.Unlock()
	if contents == nil {
		return nil, storage.ErrUnavailable
	}
	e := &entry{Journal: batch.Journal, ID: batch.ID, End: batch.End, Records: batch.Records}
	for _, r := range batch.Records {
		c, err := contents.Content(ctx, r)
		if err != nil {
			return nil, err
		}
		stored := content{Known: c != nil}
		if c != nil {
			stored.Content = *c
		}
		e.Contents = append(e.Contents, stored)
	}
	for _, a := range batch.Annotations {
		e.Notes = append(e.Notes, note{*a, a.Tag != nil})
	}
	text, err := json.Marshal(e)
	e.Sum = sha256.Sum256(text)
	return e, err
}

// read applies the entries that have become visible.
func (b *Backend) read(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.contents == nil {
		return storage.ErrUnavailable
	}
	if _, err := b.dir.up(); err != nil {
		return err
	}
	return b.dir.entries(b.faults.Visible, func(name string, read func() (*entry, error)) error {
		if b.done[name] {
			return ctx.Err()
		}
		e, err := read()
		if err == nil {
			err = b.apply(e)
		}
		b.done[name] = err == nil
		return err
	})
}

// apply applies an entry, and again the annotations that came before their records.
func (b *Backend) apply(e *entry) error {
	ctx := context.Background() // of an entry, all is applied
	batch := &storage.Batch{Journal: e.Journal, ID: e.ID, Records: e.Records, End: e.End}
	for i, r := range e.Records {
		if _, known := b.stored.Load(r.Key()); e.Contents[i].Known || !known {
			b.stored.Store(r.Key(), keptContent{e.Contents[i], r.CreatedAt})
		}
	}
	if len(e.Records) > 0 {
		batch.Annotations = slices.Clone(b.notes)
	}
	for _, n := range e.Notes {
		a := n.Annotation
		if n.Tagged && a.Tag == nil {
			a.Tag = new(string)
		}
		batch.Annotations = append(batch.Annotations, &a)
		if a.RequestID != uuid.Nil {
			b.notes = append(b.notes, &a)
		}
	}
	b.stored.Range(func(k, c any) bool {
		switch at := c.(keptContent).createdAt; {
		case at < e.Prune:
			b.stored.Delete(k)
			b.notes = slices.DeleteFunc(b.notes, func(a *storage.Annotation) bool { return a.Key() == k })
		case at < e.PruneContent:
			b.stored.Store(k, keptContent{createdAt: at})
		}
		return true
	})
	err := b.Memory.Write(ctx, batch)
	for more := e.Prune != 0; more && err == nil; {
		more, err = b.Memory.Prune(ctx, e.Prune)
	}
	if err == nil && e.PruneConversations != 0 {
		_, err = b.Memory.PruneConversations(ctx, e.PruneConversations, e.Spared)
	}
	if err == nil && e.Erase != nil {
		b.notes = slices.DeleteFunc(b.notes, func(a *storage.Annotation) bool { return a.Org == e.Org && slices.Contains(e.Erase, a.RequestID) })
		for _, id := range e.Erase {
			b.stored.Delete(storage.RecordKey{Org: e.Org, ID: id})
		}
		err = b.Memory.EraseRecords(ctx, e.Org, e.Erase, storage.ErasureScope(e.Scope))
	}
	return err
}

// EraseRecords implements storage.RecordEraser.
func (b *Backend) EraseRecords(ctx context.Context, org string, ids []uuid.UUID, scope storage.ErasureScope) error {
	_, err := b.prune(ctx, &entry{Erase: ids, Org: org, Scope: uint8(scope)})
	return err
}

// Prune deletes whole partitions.
func (b *Backend) Prune(ctx context.Context, before storage.Timestamp) (more bool, err error) {
	return b.prune(ctx, &entry{Prune: b.partition(before)})
}

// PruneContent deletes the content of whole partitions.
func (b *Backend) PruneContent(ctx context.Context, before storage.Timestamp) (more bool, err error) {
	return b.prune(ctx, &entry{PruneContent: b.partition(before)})
}

// PruneConversations deletes what conversations had whole partitions ago.
func (b *Backend) PruneConversations(ctx context.Context, before storage.Timestamp, spared []string) (more bool, err error) {
	return b.prune(ctx, &entry{PruneConversations: b.partition(before), Spared: spared})
}

func (b *Backend) prune(ctx context.Context, e *entry) (bool, error) {
	if err := b.read(ctx); err != nil {
		return false, err
	}
	start, err := b.dir.up()
	if err == nil {
		err = b.dir.add(start, e)
	}
	if err == nil {
		err = sleep(ctx, b.faults.Visible)
	}
	return false, err
}

// partition is the start of the partition that a time is in.
func (b *Backend) partition(at storage.Timestamp) storage.Timestamp {
	if size := storage.Timestamp(b.faults.PruneGranularity.Milliseconds()); size > 0 {
		return at - at%size
	}
	return at
}

// Content implements storage.ContentKeeper.
func (b *Backend) Content(ctx context.Context, r *storage.Record) (*storage.Content, error) {
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	return visibleContents{b}.Content(ctx, r)
}

// Reader implements storage.ContentKeeper.
func (b *Backend) Reader(storage.ContentPart) storage.ContentReader { return contentReader{b} }

type contentReader struct{ storage.Contents }

func (contentReader) Close() {}

// visibleContents are what was visible last, for the memory.
type visibleContents struct{ *Backend }

// Content implements storage.Contents.
func (v visibleContents) Content(ctx context.Context, r *storage.Record) (*storage.Content, error) {
	if found, ok := v.stored.Load(r.Key()); ok {
		if c := found.(keptContent); c.Known {
			return &c.Content, ctx.Err()
		}
	}
	return nil, ctx.Err()
}

// Close ends the connection.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.contents = nil
	return nil
}

var (
	_ storage.Backend       = (*Backend)(nil)
	_ storage.ContentKeeper = (*Backend)(nil)
	_ storage.Nodes         = (*Backend)(nil)
)
