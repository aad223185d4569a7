// Package remote is a storage backend for tests, remote in every respect: it is
// reached by a connection, may be down, has no transaction, takes a batch in part or
// twice, loses acknowledgements, keeps bodies itself, has many nodes write to it, and
// shows what it has taken after a while.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync"
	"time"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/storagetest"
)

// Backend is a node's connection to a Server.
type Backend struct {
	path string

	mu       sync.Mutex
	contents storage.Contents // of the host, nil when closed
	client   *rpc.Client      // nil when the connection is lost
}

// New makes a backend of the server at a path, without calling Open.
func New(path string) *Backend { return &Backend{path: path} }

// Open connects. The server keeps no positions.
func (b *Backend) Open(ctx context.Context, h *storage.Host) (storage.Position, error) {
	b.mu.Lock()
	b.contents = h.Contents
	b.mu.Unlock()
	if err := b.call(ctx, "Open", true, new(bool)); err != nil {
		return storage.Position{}, errors.Join(err, b.Close())
	}
	return h.Position, nil
}

// Limits wants small batches.
func (*Backend) Limits() storage.Limits {
	return storage.Limits{Entries: 64, Delay: 10 * time.Millisecond}
}

// call calls a method of the server, over a new connection if the last was lost.
func (b *Backend) call(ctx context.Context, method string, args, reply any) error {
	b.mu.Lock()
	open, client := b.contents != nil, b.client
	b.mu.Unlock()
	if !open {
		return storage.ErrUnavailable
	}
	if client == nil {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", b.path)
		if err != nil {
			return unavailable(ctx, err)
		}
		client = rpc.NewClient(connection)
		b.mu.Lock()
		if b.client != nil || b.contents == nil {
			client.Close() // another call was faster, or Close
			client = b.client
		}
		b.client = client
		b.mu.Unlock()
		if client == nil {
			return storage.ErrUnavailable
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case done := <-client.Go("Store."+method, args, reply, make(chan *rpc.Call, 1)).Done:
		var failed rpc.ServerError
		if done.Error == nil || errors.As(done.Error, &failed) {
			return done.Error
		}
		b.mu.Lock()
		if b.client == client {
			b.client = nil
		}
		b.mu.Unlock()
		client.Close()
		return unavailable(ctx, done.Error)
	}
}

func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
}

// Write sends a batch with its content.
func (b *Backend) Write(ctx context.Context, batch *storage.Batch) error {
	b.mu.Lock()
	contents := b.contents
	b.mu.Unlock()
	if contents == nil {
		return storage.ErrUnavailable
	}
	sent := &Batch{Journal: batch.Journal, ID: batch.ID, End: batch.End, Records: batch.Records}
	for _, r := range batch.Records {
		c, err := contents.Content(ctx, r)
		if err != nil {
			return err
		}
		kept := Content{Known: c != nil}
		if c != nil {
			kept.Content = *c
		}
		sent.Contents = append(sent.Contents, kept)
	}
	for _, a := range batch.Annotations {
		sent.Notes = append(sent.Notes, Note{*a, a.Tag != nil})
	}
	err := b.call(ctx, "Write", sent, new(bool))
	if err != nil && err.Error() == errTooMany.Error() { // which came over the wire as text
		err = fmt.Errorf("%w: %w", storage.ErrTooLarge, err)
	}
	return err
}

// rows fetches what is asked and makes a backend of it.
func (b *Backend) rows(ctx context.Context, q *Query) (*storagetest.Memory, error) {
	var rows Rows
	if err := b.call(ctx, "Rows", q, &rows); err != nil {
		return nil, err
	}
	batch := &storage.Batch{Records: rows.Records}
	for _, n := range rows.Notes {
		if n.Tagged && n.Tag == nil {
			n.Tag = new(string)
		}
		batch.Annotations = append(batch.Annotations, &n.Annotation)
	}
	m := new(storagetest.Memory)
	if _, err := m.Open(ctx, &storage.Host{Contents: b}); err != nil {
		return nil, err
	}
	return m, m.Write(ctx, batch)
}

// Requests evaluates what the server leaves of the query.
func (b *Backend) Requests(ctx context.Context, q *storage.RequestQuery) ([]*storage.Record, error) {
	rest := *q
	m, err := b.prefiltered(ctx, q.Org, &rest.Filter)
	if err != nil {
		return nil, err
	}
	return m.Requests(ctx, &rest)
}

// Groups evaluates what the server leaves of the query.
func (b *Backend) Groups(ctx context.Context, q *storage.GroupQuery, each func(*storage.GroupTotals) error) error {
	rest := *q
	m, err := b.prefiltered(ctx, q.Org, &rest.Filter)
	if err != nil {
		return err
	}
	return m.Groups(ctx, &rest, each)
}

// prefiltered fetches the rows which the server chooses by a filter, and replaces the
// filter by what is left of it.
func (b *Backend) prefiltered(ctx context.Context, org string, f *storage.Filter) (*storagetest.Memory, error) {
	plan := storage.PlanFilter(*f, support)
	*f = plan.Residual
	return b.rows(ctx, &Query{Org: org, Prefilter: storage.AppendJSON(nil, plan.Prefilter)})
}

// Request fetches one record.
func (b *Backend) Request(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	m, err := b.rows(ctx, &Query{Org: key.Org, ID: key.ID, One: true})
	if err != nil {
		return nil, err
	}
	return m.Request(ctx, key)
}

// SessionTag looks a tag up.
func (b *Backend) SessionTag(ctx context.Context, org, sessionID string) (string, error) {
	m, err := b.rows(ctx, &Query{Org: org})
	if err != nil {
		return "", err
	}
	return m.SessionTag(ctx, org, sessionID)
}

// Views answers the views of an organisation.
func (b *Backend) Views(ctx context.Context, org string) ([]storage.View, error) {
	m, err := b.rows(ctx, &Query{Org: org})
	if err != nil {
		return nil, err
	}
	return m.Views(ctx, org)
}

// Conversation makes a conversation of its changes.
func (b *Backend) Conversation(ctx context.Context, org, id string) (*storage.Conversation, error) {
	m, err := b.rows(ctx, &Query{Org: org})
	if err != nil {
		return nil, err
	}
	return m.Conversation(ctx, org, id)
}

// Conversations answers an organisation's conversations.
func (b *Backend) Conversations(ctx context.Context, org, after string, limit int) ([]*storage.Conversation, error) {
	m, err := b.rows(ctx, &Query{Org: org})
	if err != nil {
		return nil, err
	}
	return m.Conversations(ctx, org, after, limit)
}

// SessionTags answers the tags of an organisation's sessions.
func (b *Backend) SessionTags(ctx context.Context, org string) ([]*storage.Annotation, error) {
	m, err := b.rows(ctx, &Query{Org: org})
	if err != nil {
		return nil, err
	}
	return m.SessionTags(ctx, org)
}

// Organisations answers those that the server has something of.
func (b *Backend) Organisations(ctx context.Context) ([]string, error) {
	orgs := new([]string) // the connection's when the context ends first
	if err := b.call(ctx, "Organisations", true, orgs); err != nil {
		return nil, err
	}
	return *orgs, nil
}

// Prune deletes whole partitions, a hundred records at a time.
func (b *Backend) Prune(ctx context.Context, before storage.Timestamp) (more bool, err error) {
	return b.prune(ctx, "Prune", before)
}

// PruneContent deletes the content of whole partitions.
func (b *Backend) PruneContent(ctx context.Context, before storage.Timestamp) (more bool, err error) {
	return b.prune(ctx, "PruneContent", before)
}

// PruneConversations deletes what conversations had whole partitions ago.
func (b *Backend) PruneConversations(ctx context.Context, before storage.Timestamp) (more bool, err error) {
	return b.prune(ctx, "PruneConversations", before)
}

func (b *Backend) prune(ctx context.Context, method string, before storage.Timestamp) (bool, error) {
	more := new(bool) // the connection's when the context ends first
	if err := b.call(ctx, method, before, more); err != nil {
		return false, err
	}
	return *more, nil
}

// Content fetches the content of a record.
func (b *Backend) Content(ctx context.Context, r *storage.Record) (*storage.Content, error) {
	var c Content
	if err := b.call(ctx, "Content", &Query{Org: r.Org, ID: r.ID}, &c); err != nil || !c.Known {
		return nil, err
	}
	return &c.Content, nil
}

// Reader fetches the content of one record after the other.
func (b *Backend) Reader(storage.ContentPart) storage.ContentReader { return contentReader{b} }

type contentReader struct{ *Backend }

func (contentReader) Close() {}

// Close ends the connection.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.contents = nil
	if b.client == nil {
		return nil
	}
	client := b.client
	b.client = nil
	if err := client.Close(); !errors.Is(err, rpc.ErrShutdown) {
		return err
	}
	return nil
}

var (
	_ storage.Backend       = (*Backend)(nil)
	_ storage.ContentKeeper = (*Backend)(nil)
)
