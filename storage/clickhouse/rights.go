package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// checkRights tells which rights the user lacks, before a statement fails for lack of a right.
// The error has the statements that grant the rights. A server before 24.11 knows no CHECK
// GRANT: there the first statement that needs a right fails.
func (b *Backend) checkRights(ctx context.Context, conn clickhouse.Conn, hasDatabase bool) error {
	user := quoteName(cmp.Or(b.config.Options.Auth.Username, "default"))
	tables := quoteName(b.config.Options.Auth.Database) + ".*"
	needed := [][2]string{{"CREATE TABLE", tables}, {"TABLE ENGINE", b.engine()}, {"SELECT", tables}, {"INSERT", tables}, {"ALTER DELETE", tables}, {"ALTER SETTINGS", tables}, {"ALTER ADD COLUMN", tables}, {"SELECT", "system.parts"}}
	if !hasDatabase {
		needed = append(needed, [2]string{"CREATE DATABASE", tables})
	}
	if b.config.Cluster != "" {
		needed = append(needed, [2]string{"CLUSTER", "*.*"}, [2]string{"SYSTEM SYNC REPLICA", tables})
	}
	var missing []string
	for _, right := range needed {
		grant := right[0] + " ON " + right[1]
		var granted uint8
		err := conn.QueryRow(ctx, "CHECK GRANT "+grant).Scan(&granted)
		switch {
		case isCode(err, codeSyntax):
			return nil
		case err != nil:
			return err
		case granted == 0:
			missing = append(missing, "GRANT "+grant+" TO "+user)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the user lacks rights; give them with: %s", strings.Join(missing, "; "))
	}
	return nil
}
