package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"
	"testing"
)

func TestAResponseIsFoundByAnIndex(t *testing.T) {
	b := newBackend(t)
	err := b.withReader(t.Context(), func(ctx context.Context, r reader) error {
		return r.c.query(ctx, "EXPLAIN QUERY PLAN "+responseQuery, append(nameArgs("org", "default"), "x"), func(row []driver.Value) error {
			if step := row[3].(string); strings.Contains(step, "SCAN") {
				t.Error("no index is used:", step)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}
