package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// nodesTable has the states of nodes, and what each has erased. Retention and erasures leave it alone.
const nodesTable = `CREATE TABLE IF NOT EXISTS nodes{cluster} (
	org      LowCardinality(String), -- none
	node     UUID,
	number   Int64, -- 0 is the state of the node, from 1 on are the parts of what it has erased
	text     String CODEC(ZSTD(1)),
	saved_at DateTime64(6, 'UTC') DEFAULT now64(6)
) ENGINE = {replacing}(saved_at)
ORDER BY (org, node, number)
SETTINGS {window} = 10000`

// nodeStates reads the last state of each node that has saved one, or has a mark, and how long ago the server heard of it,
// in microseconds. The mark of a table has no time.
const nodeStates = `SELECT node, argMaxIf(text, at, is_state), if(max(at) = toDateTime64(0, 6, 'UTC'), 0, toUnixTimestamp64Micro(now64(6)) - toUnixTimestamp64Micro(max(at))) FROM (
	SELECT node, text, saved_at AS at, true AS is_state FROM nodes WHERE org = '' AND number = 0
	UNION ALL SELECT node, '', toDateTime64(max(marked_at), 6, 'UTC'), false FROM partitions
		WHERE org = '' AND partition != '' AND node != toUUID('00000000-0000-0000-0000-000000000000') GROUP BY node
	UNION ALL SELECT request_id, '', toDateTime64(0, 6, 'UTC'), false FROM records
		WHERE org = '' AND created_at = toDateTime64('` + markTime + `', 3, 'UTC')
) GROUP BY node`

// Nodes implements storage.Nodes. If somebody has dropped the table, it is created again.
func (b *Backend) Nodes(ctx context.Context) (nodes map[uuid.UUID]storage.Node, err error) {
	if nodes, err = b.readNodes(ctx); isCode(err, codeUnknownTable) {
		if err = b.createNodes(ctx); err == nil {
			nodes, err = b.readNodes(ctx)
		}
	}
	if err == nil && b.config.Cluster != "" {
		err = b.syncNodes(ctx, nodes)
	}
	return nodes, err
}

func (b *Backend) createNodes(ctx context.Context) error {
	return b.withConn(ctx, "creating ClickHouse's table nodes", func(ctx context.Context, conn driver.Conn) (err error) {
		for _, statement := range b.statements(nodesTable) {
			err = errors.Join(err, conn.Exec(ctx, statement))
		}
		return err
	})
}

func (b *Backend) readNodes(ctx context.Context) (map[uuid.UUID]storage.Node, error) {
	nodes := make(map[uuid.UUID]storage.Node)
	err := b.withConn(ctx, "reading the states of nodes in ClickHouse", func(ctx context.Context, conn driver.Conn) error {
		return eachRow(ctx, conn, nodeStates, nil, func(rows driver.Rows) error {
			var id uuid.UUID
			var node storage.Node
			var age int64
			err := rows.Scan(&id, &node.State, &age)
			node.Age = time.Duration(age) * time.Microsecond
			nodes[id] = node
			return err
		})
	})
	return nodes, err
}

// syncNodes waits until the replica has what nodes wrote before they saved new states.
func (b *Backend) syncNodes(ctx context.Context, nodes map[uuid.UUID]storage.Node) error {
	changed := len(nodes) != len(b.syncedStates)
	for id, node := range nodes {
		changed = changed || b.syncedStates[id] != node.State
	}
	if !changed {
		return nil
	}
	err := b.withConn(ctx, "bringing ClickHouse's replica up to date", func(ctx context.Context, conn driver.Conn) error {
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
	b.syncedStates = make(map[uuid.UUID]string, len(nodes))
	for id, node := range nodes {
		b.syncedStates[id] = node.State
	}
	return nil
}

// SaveNode implements storage.Nodes.
func (b *Backend) SaveNode(ctx context.Context, node uuid.UUID, state string) error {
	return b.insertOfNode(ctx, node, 0, state)
}

// AddErased implements storage.Nodes.
func (b *Backend) AddErased(ctx context.Context, node uuid.UUID, number int64, part []byte) error {
	return b.insertOfNode(ctx, node, number, string(part))
}

// ErasedBy implements storage.Nodes.
func (b *Backend) ErasedBy(ctx context.Context, node uuid.UUID, after int64) (parts [][]byte, err error) {
	err = b.withConn(ctx, "reading what a node has erased from ClickHouse", func(ctx context.Context, conn driver.Conn) error {
		return eachRow(ctx, conn, fmt.Sprintf("SELECT number, text FROM nodes FINAL WHERE org = '' AND node = '%s' AND number > %d ORDER BY number", node, after), nil, func(rows driver.Rows) error {
			var number int64
			var text string
			if err := rows.Scan(&number, &text); err != nil {
				return err
			}
			if number == after+int64(len(parts))+1 { // else one before it is missing
				parts = append(parts, []byte(text))
			}
			return nil
		})
	})
	return parts, err
}

func (b *Backend) insertOfNode(ctx context.Context, node uuid.UUID, number int64, text string) error {
	return b.withConn(ctx, "writing what a node tells others to ClickHouse", func(ctx context.Context, conn driver.Conn) error {
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

// withConn gives do the connection, for a time. doing begins its error.
func (b *Backend) withConn(ctx context.Context, doing string, do func(context.Context, driver.Conn) error) error {
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

var _ storage.Nodes = (*Backend)(nil)
