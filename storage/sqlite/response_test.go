package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

func TestResponsesAreFoundByTheProvidersID(t *testing.T) {
	b := newBackend(t)
	batch := newTraffic(20).batch(20)
	for i, r := range batch.Records {
		r.Org, r.Dialect, r.ResponseID = "default", plugins.Responses, "resp_"+r.ID.String()
		switch i {
		case 1, 2:
			r.ResponseID = "resp_twice"
		case 3:
			r.Org = "other"
		case 4:
			r.Dialect = plugins.Chat
		case 5:
			r.Dialect, r.ResponseID = plugins.Batches, "batch_1"
		}
	}
	write(t, b, batch)
	newest := batch.Records[1]
	if newest.CreatedAt < batch.Records[2].CreatedAt {
		newest = batch.Records[2]
	}
	for id, want := range map[string]uuid.UUID{
		batch.Records[0].ResponseID: batch.Records[0].ID,
		"resp_twice":                newest.ID,
		batch.Records[3].ResponseID: uuid.Nil,
		batch.Records[4].ResponseID: uuid.Nil,
		"batch_1":                   batch.Records[5].ID,
		"resp_unknown":              uuid.Nil,
	} {
		got, err := b.Response(t.Context(), "default", id)
		if want == uuid.Nil && !errors.Is(err, storage.ErrNotFound) || want != uuid.Nil && (err != nil || got.ID != want) {
			t.Errorf("%s: %v, %v", id, got, err)
		}
	}
	err := b.reading(t.Context(), func(ctx context.Context, r reader) error {
		return r.c.query(ctx, "EXPLAIN QUERY PLAN "+responseQuery, []driver.Value{"x", "default"}, func(row []driver.Value) error {
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
