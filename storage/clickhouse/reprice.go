package clickhouse

import (
	"context"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/weirhq/weir/storage"
)

// Reprice implements storage.Repricer. The rows are changed where they are: a row that is inserted
// could bring back a record that another node erases meanwhile.
func (b *Backend) Reprice(ctx context.Context, org string, changes []storage.Repricing) (done []storage.Repricing, err error) {
	if len(changes) == 0 {
		return nil, ctx.Err()
	}
	err = b.reading(ctx, org, "changing costs in ClickHouse", func(r *reader) error {
		before, err := r.stored(ctx, changes)
		if err != nil {
			return err
		}
		changes = slices.DeleteFunc(slices.Clone(changes), func(c storage.Repricing) bool {
			now, ok := before[keyOf(c.Before)]
			return !ok || !sameColumns(now.record, c.Before, "updated_at") // which annotations change
		})
		if len(changes) == 0 {
			return nil
		}
		if err := r.reprice(ctx, b.onCluster(), changes, before); err != nil {
			return err
		}
		after, err := r.stored(ctx, changes)
		for _, c := range changes {
			if now, ok := after[keyOf(c.Before)]; ok && sameColumns(now.record, c.After, "") {
				done = append(done, c)
			}
		}
		return err
	})
	return done, err
}

// storedVersion is the newest row of a record, without annotations.
type storedVersion struct {
	record  *storage.Record
	version *big.Int
}

func keyOf(r *storage.Record) key { return key{r.CreatedAt, r.ID} }

// stored reads the newest rows of records.
func (r *reader) stored(ctx context.Context, changes []storage.Repricing) (map[key]storedVersion, error) {
	p, s, version := r.withOwnParams(), newScanner(), new(big.Int)
	found := make(map[key]storedVersion, len(changes))
	to := append(slices.Clip(s.to), version)
	return found, p.query(ctx, "SELECT "+columnNames+", version FROM records PREWHERE "+all(ofOrg, p.keysCondition(keysOf(changes)))+
		" ORDER BY version DESC LIMIT 1 BY created_at, request_id", func(rows driver.Rows) error {
		copy(to, s.to) // a record has taken some of them
		err := rows.Scan(to...)
		record := s.record()
		found[keyOf(record)] = storedVersion{record, new(big.Int).Set(version)}
		return err
	})
}

func keysOf(changes []storage.Repricing) []key {
	keys := make([]key, len(changes))
	for i, c := range changes {
		keys[i] = keyOf(c.Before)
	}
	return keys
}

// sameColumns reports whether two records have the same values in all columns but one.
func sameColumns(a, b *storage.Record, except string) bool {
	return !slices.ContainsFunc(columns, func(c *storage.Column) bool { return c.Name != except && !reflect.DeepEqual(c.Get(a), c.Get(b)) })
}

// reprice changes the columns in which records differ, in the rows that were read before.
func (r *reader) reprice(ctx context.Context, onCluster string, changes []storage.Repricing, before map[key]storedVersion) error {
	p := r.withOwnParams()
	keys := keysOf(changes)
	ids, numbers, versions := make([]string, len(keys)), make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		ids[i], numbers[i], versions[i] = k.id.String(), strconv.Itoa(i+1), before[k].version.String()
	}
	place := "transform(request_id, " + p.bind(ids, "Array(UUID)") + ", [" + strings.Join(numbers, ",") + "], 0)"
	var updates []string
	for _, c := range columns {
		if !slices.ContainsFunc(changes, func(x storage.Repricing) bool { return !reflect.DeepEqual(c.Get(x.Before), c.Get(x.After)) }) {
			continue
		}
		values, err := p.array(c, changes)
		if err != nil {
			return err
		}
		value := values + "[" + place + "]"
		if c.Type() == storage.TimeColumn {
			value = "fromUnixTimestamp64Milli(" + value + ", 'UTC')"
		}
		updates = append(updates, c.Name+" = "+value)
	}
	if len(updates) == 0 {
		return nil
	}
	these := all(p.keysCondition(keys), "toString(version) = "+p.bind(versions, "Array(String)")+"["+place+"]")
	return p.mutate(ctx, "records", "ALTER TABLE records"+onCluster+" UPDATE "+strings.Join(updates, ", "), these)
}

// array has the new values of a column, one for each change.
func (p *params) array(c *storage.Column, changes []storage.Repricing) (string, error) {
	texts := make([]string, len(changes))
	for i, x := range changes {
		v := c.Get(x.After)
		switch c.Type() {
		case storage.TextColumn:
			texts[i] = orZero[string](v)
		case storage.FlagColumn:
			texts[i] = strconv.FormatBool(orZero[bool](v))
		case storage.IntegerColumn, storage.TimeColumn:
			texts[i] = "NULL"
			if n, ok := v.(int64); ok || c.NotNull() || c.Type() == storage.TimeColumn {
				texts[i] = strconv.FormatInt(n, 10)
			}
		default:
			return "", fmt.Errorf("%s is no column that a price decides on", c.Name)
		}
	}
	list := "[" + strings.Join(texts, ",") + "]"
	switch c.Type() {
	case storage.TextColumn:
		return p.bind(texts, "Array(String)"), nil
	case storage.FlagColumn:
		return list + "::Array(Bool)", nil
	case storage.TimeColumn:
		return list + "::Array(Int64)", nil
	}
	return list + "::Array(Nullable(Int64))", nil
}

var _ storage.Repricer = (*Backend)(nil)
