package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// nodesTable has what nodes tell each other. Retention and erasures leave it alone.
const nodesTable = `CREATE TABLE IF NOT EXISTS nodes{cluster} (
	org     LowCardinality(String), -- none
	node    UUID,
	number  Int64, -- 0 is the note of the node, from 1 on are the entries of its list of erased records
	text    String CODEC(ZSTD(1)),
	left_at DateTime64(6, 'UTC') DEFAULT now64(6)
) ENGINE = {replacing}(left_at)
ORDER BY (org, node, number)
SETTINGS {window} = 10000`

// heardOf reads the last note of each node that has left one, or has a mark, and how long ago the server heard of it, in
// microseconds. The mark of a table has no time.
const heardOf = `SELECT node, argMaxIf(text, at, noted), if(max(at) = toDateTime64(0, 6, 'UTC'), 0, toUnixTimestamp64Micro(now64(6)) - toUnixTimestamp64Micro(max(at))) FROM (
	SELECT node, text, left_at AS at, true AS noted FROM nodes WHERE org = '' AND number = 0
	UNION ALL SELECT node, '', toDateTime64(max(marked_at), 6, 'UTC'), false FROM partitions
		WHERE org = '' AND partition != '' AND node != toUUID('00000000-0000-0000-0000-000000000000') GROUP BY node
	UNION ALL SELECT request_id, '', toDateTime64(0, 6, 'UTC'), false FROM records
		WHERE org = '' AND created_at = toDateTime64('` + markTime + `', 3, 'UTC')
) GROUP BY node`

// Notes implements storage.Peers.
func (b *Backend) Notes(ctx context.Context) (notes map[uuid.UUID]storage.Note, err error) {
	notes = make(map[uuid.UUID]storage.Note)
	err = b.ofNodes(ctx, "reading the notes of nodes in ClickHouse", func(ctx context.Context, conn driver.Conn) error {
		return eachRow(ctx, conn, heardOf, nil, func(rows driver.Rows) error {
			var node uuid.UUID
			var note storage.Note
			var age int64
			err := rows.Scan(&node, &note.Text, &age)
			note.Age = time.Duration(age) * time.Microsecond
			notes[node] = note
			return err
		})
	})
	if err == nil && b.config.Cluster != "" {
		err = b.syncNoted(ctx, notes)
	}
	return notes, err
}

// syncNoted waits until the replica has what nodes wrote before they left new notes.
func (b *Backend) syncNoted(ctx context.Context, notes map[uuid.UUID]storage.Note) error {
	changed := len(notes) != len(b.noted)
	for node, note := range notes {
		changed = changed || b.noted[node] != note.Text
	}
	if !changed {
		return nil
	}
	err := b.ofNodes(ctx, "bringing ClickHouse's replica up to date", func(ctx context.Context, conn driver.Conn) error {
		for _, table := range append(slices.Collect(maps.Keys(markedTables)), "nodes") {
			if err := conn.Exec(ctx, syncReplica(table)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.noted = make(map[uuid.UUID]string, len(notes))
	for node, note := range notes {
		b.noted[node] = note.Text
	}
	return nil
}

// LeaveNote implements storage.Peers.
func (b *Backend) LeaveNote(ctx context.Context, journal uuid.UUID, text string) error {
	return b.addOfNode(ctx, journal, 0, text)
}

// AddErased implements storage.Peers.
func (b *Backend) AddErased(ctx context.Context, journal uuid.UUID, number int64, entry []byte) error {
	return b.addOfNode(ctx, journal, number, string(entry))
}

// ErasedBy implements storage.Peers.
func (b *Backend) ErasedBy(ctx context.Context, journal uuid.UUID, after int64) (entries [][]byte, err error) {
	err = b.ofNodes(ctx, "reading what a node has erased from ClickHouse", func(ctx context.Context, conn driver.Conn) error {
		return eachRow(ctx, conn, fmt.Sprintf("SELECT number, text FROM nodes FINAL WHERE org = '' AND node = '%s' AND number > %d ORDER BY number", journal, after), nil, func(rows driver.Rows) error {
			var number int64
			var text string
			if err := rows.Scan(&number, &text); err != nil {
				return err
			}
			if number == after+int64(len(entries))+1 { // else one before it is missing
				entries = append(entries, []byte(text))
			}
			return nil
		})
	})
	return entries, err
}

func (b *Backend) addOfNode(ctx context.Context, node uuid.UUID, number int64, text string) error {
	return b.ofNodes(ctx, "writing what a node tells others to ClickHouse", func(ctx context.Context, conn driver.Conn) error {
		insert, err := conn.PrepareBatch(withMarkSettings(ctx), "INSERT INTO nodes (org, node, number, text)")
		if err != nil {
			return err
		}
		defer insert.Close()
		if err := insert.Append("", node, number, text); err != nil {
			return err
		}
		return insert.Send()
	})
}

// ofNodes gives do the connection, for a time. doing begins its error.
func (b *Backend) ofNodes(ctx context.Context, doing string, do func(context.Context, driver.Conn) error) error {
	conn, _, err := b.opened()
	if err != nil {
		return err
	}
	within, cancel := b.changing(ctx)
	defer cancel()
	if err := do(within, conn); err != nil {
		return fmt.Errorf("%s: %w", doing, explain(ctx, err))
	}
	return nil
}

var _ storage.Peers = (*Backend)(nil)
