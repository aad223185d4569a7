package clickhouse

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/weirhq/weir/storage"
)

// migrations lead from one version of the schema to the next. Statements change
// nothing when they run twice, since ClickHouse has no transaction around them. Migrations
// never change. A value of a record that came later is a column that addColumns adds.
//
//go:embed migrations/*.sql
var migrations embed.FS

// versionTable has a row for each migration that was done.
const versionTable = `CREATE TABLE IF NOT EXISTS schema_version{cluster} (
	version UInt32, checksum String, at DateTime DEFAULT now()
) ENGINE = {replacing} ORDER BY version`

// migrate brings the schema up to date.
func (b *Backend) migrate(ctx context.Context, conn clickhouse.Conn) error {
	steps, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	done, err := b.schemaVersions(ctx, conn)
	if err != nil {
		return err
	}
	if n := len(done); n > len(steps) {
		return fmt.Errorf("the schema has version %d, and this Weir knows versions up to %d: use a newer Weir: %w", n, len(steps), storage.ErrRejected)
	}
	for i, step := range steps {
		text, err := migrations.ReadFile("migrations/" + step.Name())
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		checksum := hex.EncodeToString(sum[:8])
		if was, ok := done[uint32(i+1)]; ok {
			if was != checksum {
				return fmt.Errorf("version %d of the schema was made by another build of Weir (checksum %s, not %s): use that build, or an empty database: %w", i+1, was, checksum, storage.ErrRejected)
			}
			continue
		}
		for _, statement := range b.statements(string(text)) {
			if err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("migrating the schema to version %d: %w", i+1, err)
			}
		}
		if err := conn.Exec(ctx, "INSERT INTO schema_version (version, checksum) VALUES ($1, $2)", i+1, checksum); err != nil {
			return err
		}
	}
	for _, statement := range b.statements(spanKeys + ";\n" + itemRecord + ";\n" + partitionMarks + ";\n" + nodesTable) {
		if err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("adding what the schema lacks: %w", err)
		}
	}
	return b.addColumns(ctx, conn)
}

// addColumns adds the columns that the table of records lacks. Older versions of Weir
// write rows without these.
func (b *Backend) addColumns(ctx context.Context, conn clickhouse.Conn) error {
	var known []string
	err := eachRow(ctx, conn, "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'records'", nil, textTo(&known))
	if err != nil {
		return err
	}
	for _, c := range columns {
		if slices.Contains(known, c.Name) {
			continue
		}
		statement := "ALTER TABLE records" + b.onCluster() + " ADD COLUMN IF NOT EXISTS " + c.Name + " " + definition(c)
		if err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("adding the column %s: %w", c.Name, err)
		}
	}
	return nil
}

// definition is the type of a column that is added. A record without the value has the
// type's default.
func definition(c *storage.Column) string {
	switch c.Type() {
	case storage.TextColumn:
		if c.Names != "" {
			return "LowCardinality(String)"
		}
		return "String CODEC(ZSTD(1))"
	case storage.TimeColumn:
		return "DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1))"
	case storage.FlagColumn:
		return "Bool"
	case storage.IDColumn:
		return "UUID CODEC(ZSTD(1))"
	}
	if c.NotNull() {
		return "Int64 CODEC(T64, ZSTD(1))"
	}
	return "Nullable(Int64) CODEC(T64, ZSTD(1))"
}

// schemaVersions are the checksums of the migrations that were done.
func (b *Backend) schemaVersions(ctx context.Context, conn clickhouse.Conn) (map[uint32]string, error) {
	if err := conn.Exec(ctx, b.statements(versionTable)[0]); err != nil {
		return nil, err
	}
	done := make(map[uint32]string)
	return done, eachRow(ctx, conn, "SELECT DISTINCT version, checksum FROM schema_version", nil, func(rows driver.Rows) error {
		var version uint32
		var checksum string
		err := rows.Scan(&version, &checksum)
		done[version] = checksum
		return err
	})
}

// schemaCreated is when the schema was created, in seconds since 1970.
func schemaCreated(ctx context.Context, conn clickhouse.Conn) (at int64, err error) {
	err = conn.QueryRow(ctx, "SELECT toInt64(toUnixTimestamp(min(at))) FROM schema_version").Scan(&at)
	return at, err
}

// createdTogether is the time within which nodes that start at once can create the same schema: each
// writes its row, and a merge keeps a later one.
const createdTogether = 10 * 60 // seconds

// createdAgain reports whether a schema is another one than that which a node has known.
func createdAgain(known string, created int64) bool {
	was, err := strconv.ParseInt(known, 10, 64)
	return err == nil && created > was+createdTogether
}

// statements are the statements of a migration, for a single server or for a cluster.
func (b *Backend) statements(migration string) (statements []string) {
	window := "non_replicated_deduplication_window"
	if b.config.Cluster != "" {
		window = "replicated_deduplication_window"
	}
	text := strings.NewReplacer("{cluster}", b.onCluster(), "{replacing}", b.engine(), "{window}", window).Replace(migration)
	for statement := range strings.SplitSeq(text, ";\n") {
		if strings.TrimSpace(statement) != "" {
			statements = append(statements, statement)
		}
	}
	return statements
}

// engine is the engine of all tables.
func (b *Backend) engine() string {
	if b.config.Cluster != "" {
		return "ReplicatedReplacingMergeTree"
	}
	return "ReplacingMergeTree"
}

// onCluster makes a statement one for all servers of the cluster.
func (b *Backend) onCluster() string {
	if b.config.Cluster == "" {
		return ""
	}
	return " ON CLUSTER " + quoteName(b.config.Cluster)
}

// quoteName makes an identifier of a name of the configuration.
func quoteName(name string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}
