// Package clickhouse keeps records and their bodies in ClickHouse, so that many Weirs
// write to one store, and each answers queries from it. migrations/ has the schema with
// comments on columns whose names do not explain them.
//
// Three rules hold everywhere: a statement names the organisation for every table that
// it reads, values from users are query parameters, and a batch that is written twice
// changes nothing.
package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Config is what a Backend needs to know.
type Config struct {
	// Options are how to reach the server. Auth.Database names the database, which
	// Open creates if it does not exist.
	Options clickhouse.Options
	// Cluster names the servers that have a replica of the tables each, "" for a
	// single server.
	Cluster string
	// Timeout bounds each change of the store except migrations, so that a server which
	// hangs is noticed. 0 is changeTimeout.
	Timeout time.Duration
}

// changeTimeout leaves time for a full batch on a busy server.
const changeTimeout = 20 * time.Second

// changing is a context for one change of the store.
func (b *Backend) changing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(b.config.Timeout, changeTimeout))
}

// Backend is a storage.Backend on a ClickHouse database.
type Backend struct {
	config Config

	mu       sync.RWMutex // held for reading while conn is used
	conn     clickhouse.Conn
	contents storage.Contents
	pruned   time.Time // what conversations had before is deleted
	spared   []string  // but not of these organisations
	node     uuid.UUID // storage.Host.Journal

	// marked are the partitions that have the mark of this node, nil until it is known. Write and Prune alone
	// use it.
	marked map[partition]bool

	// syncedStates are the states that the replica is up to date with, by node. Nodes alone uses it.
	syncedStates map[uuid.UUID]string

	// trace sees every statement that reads records, for a test.
	trace func(statement string)
	// sortable bounds the requests that Weir sorts by properties, as the server does not.
	sortable int
}

// New makes a backend, not yet open.
func New(c Config) *Backend { return &Backend{config: c, sortable: storage.MaxPropertySort} }

// Open connects, and creates or migrates the tables. ClickHouse keeps no positions: a
// batch that Write has returned for is safe.
func (b *Backend) Open(ctx context.Context, h *storage.Host) (storage.Position, error) {
	conn, err := b.connect(ctx)
	if err != nil {
		return storage.Position{}, fmt.Errorf("opening ClickHouse at %v: %w", b.config.Options.Addr, explain(ctx, err))
	}
	position, err := b.compare(ctx, conn, h)
	if err != nil {
		return storage.Position{}, errors.Join(fmt.Errorf("opening ClickHouse: %w", explain(ctx, err)), conn.Close())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn, b.contents, b.node, b.marked = conn, h.Contents, h.Journal, nil
	return position, nil
}

// compare compares the database with what the host knows of it, and returns how far it reaches.
func (b *Backend) compare(ctx context.Context, conn clickhouse.Conn, h *storage.Host) (storage.Position, error) {
	created, err := schemaCreated(ctx, conn)
	if err != nil {
		return storage.Position{}, err
	}
	known, marks, _ := strings.Cut(h.Database, " ")
	h.Database = strconv.FormatInt(created, 10)
	if createdAgain(known, created) {
		return storage.Position{}, nil // the database was deleted, and this one was created since
	}
	position := h.Position
	if " "+marks != withMarks { // an earlier version did not mark partitions, or this node has not come so far
		return position, nil
	}
	missing, err := b.lostPartitions(ctx, conn, h.Journal)
	if err != nil {
		return storage.Position{}, err
	}
	if len(missing) == 0 {
		h.Database += withMarks
	}
	truncated := slices.Contains(missing, partition{table: "records"})
	for table, text := range losses(missing) {
		switch {
		case table == "records" && truncated:
			position = storage.Position{}
		case h.Damaged != nil:
			h.Damaged(text)
		}
	}
	return position, nil
}

// withMarks ends storage.Host.Database once the tables and partitions have the marks of the node. From when Open
// finds a mark missing until Mark, it is not there: the loss is noticed once.
const withMarks = " partitions marked"

// connect makes a connection to the database, with its schema as this version wants it.
func (b *Backend) connect(ctx context.Context) (clickhouse.Conn, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	conn, err := clickhouse.Open(b.options())
	if err != nil {
		return nil, err
	}
	if err := b.migrate(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// options are the options of the configuration, with the settings of every statement.
func (b *Backend) options() *clickhouse.Options {
	o := b.config.Options
	o.Settings = maps.Clone(settings)
	maps.Copy(o.Settings, b.config.Options.Settings)
	return &o
}

// prepare makes sure of the server's version, of the user's rights and of the database.
func (b *Backend) prepare(ctx context.Context) (err error) {
	ctx, cancel := b.changing(ctx)
	defer cancel()
	o := b.options()
	database := o.Auth.Database
	o.Auth.Database = "system" // every server has it
	conn, err := clickhouse.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	v, err := conn.ServerVersion()
	if err != nil {
		return err
	}
	if v.Version.Major < 24 || v.Version.Major == 24 && v.Version.Minor < 8 {
		return fmt.Errorf("the server is %d.%d, and 24.8 is the oldest that Weir works with: %w", v.Version.Major, v.Version.Minor, storage.ErrRejected)
	}
	var found uint64
	err = conn.QueryRow(ctx, "SELECT count() FROM databases WHERE name = {name:String}", clickhouse.Named("name", database)).Scan(&found)
	if err == nil {
		err = b.checkRights(ctx, conn, found > 0)
	}
	if err != nil || found > 0 {
		return err
	}
	return conn.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+quoteName(database)+b.onCluster())
}

// Limits wants large batches: each becomes a part of a table for each day in it.
func (*Backend) Limits() storage.Limits {
	return storage.Limits{Entries: 10_000, Bytes: 8 << 20, Delay: time.Second}
}

// Close closes the connections. Queries in flight fail.
func (b *Backend) Close() error {
	b.mu.Lock()
	conn := b.conn
	b.conn, b.contents = nil, nil
	b.mu.Unlock()
	if conn == nil {
		return nil
	}
	return conn.Close()
}

// opened returns the connection and the contents of an open backend.
func (b *Backend) opened() (clickhouse.Conn, storage.Contents, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.conn == nil {
		return nil, nil, fmt.Errorf("ClickHouse at %v is not open: %w", b.config.Options.Addr, storage.ErrUnavailable)
	}
	return b.conn, b.contents, nil
}

// The codes of ClickHouse's errors (src/Common/ErrorCodes.cpp) that matter here.
const (
	codeUnknownTable   = 60
	codeSyntax         = 62
	codeTooManyQueries = 202
	codeAborted        = 236
	codeAuthentication = 516
	codeAccessDenied   = 497
)

func isCode(err error, code int32) bool {
	var e *clickhouse.Exception
	return errors.As(err, &e) && e.Code == code
}

// explain says what an error means for the host, and what an operator can do about it.
func explain(ctx context.Context, err error) error {
	var network net.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case isCode(err, codeAccessDenied):
		return fmt.Errorf("%w: grant the user what this names (docs/storage_clickhouse.md has all that it needs)", err)
	case isCode(err, codeAuthentication):
		return fmt.Errorf("%w: check the user and the password of the store", err)
	case isCode(err, codeAborted), isCode(err, codeTooManyQueries):
		return fmt.Errorf("%w: the server is stopping, or has too much to do: %w", storage.ErrUnavailable, err)
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, clickhouse.ErrAcquireConnTimeout):
		return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
	return err
}

var (
	_ storage.Backend       = (*Backend)(nil)
	_ storage.ContentKeeper = (*Backend)(nil)

	_ storage.ResponseFinder = (*Backend)(nil)
	_ storage.SpanFinder     = (*Backend)(nil)
	_ storage.Verifier       = (*Backend)(nil)
	_ storage.Marker         = (*Backend)(nil)
)
