package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"

	"github.com/duckdb/duckdb-go/v2"
	_ "github.com/mattn/go-sqlite3" // reads what is copied
)

// copyToDuckDB returns a database of DuckDB, on one thread, with the columns that the questions
// need. It is beside the store's, and made once.
func copyToDuckDB(ctx context.Context, path string) (*sql.DB, error) {
	file := path + ".duckdb"
	_, missing := os.Stat(file)
	connector, err := duckdb.NewConnector(file+"?threads=1", nil)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	if missing == nil {
		return db, nil
	}
	if err := copyRecords(ctx, db, connector, path); err != nil {
		return nil, errors.Join(fmt.Errorf("the records cannot be copied to DuckDB: %w", err), db.Close(), os.Remove(file))
	}
	return db, nil
}

// selectRecords reads what is copied. A request's time is the upper part of its key, and names are
// kept once.
const selectRecords = `SELECT r.n >> 20, r.responded_at, m.name, u.name, r.status, r.latency, r.cost, r.input, r.output,
	d.properties ->> '$.Tenant', d.properties ->> '$.Environment',
	(SELECT value FROM scores s WHERE s.n = r.n AND s.name = (SELECT id FROM names WHERE kind = 'score' AND name = 'accuracy'))
	FROM requests r JOIN details d ON d.n = r.n LEFT JOIN names m ON m.id = r.model LEFT JOIN names u ON u.id = r.user ORDER BY r.n`

func copyRecords(ctx context.Context, db *sql.DB, connector *duckdb.Connector, path string) (err error) {
	if _, err := db.ExecContext(ctx, `CREATE TABLE requests (created_at BIGINT, responded_at BIGINT, model VARCHAR, "user" VARCHAR, status BIGINT,
		latency BIGINT, cost BIGINT, input BIGINT, output BIGINT, tenant VARCHAR, environment VARCHAR, accuracy DOUBLE)`); err != nil {
		return err
	}
	from, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	if err != nil {
		return err
	}
	defer from.Close()
	rows, err := from.QueryContext(ctx, selectRecords)
	if err != nil {
		return err
	}
	defer rows.Close()
	conn, err := connector.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	appender, err := duckdb.NewAppenderFromConn(conn, "", "requests")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, appender.Close()) }()
	const columns = 12
	for rows.Next() {
		values, places := make([]driver.Value, columns), make([]any, columns)
		for i := range places {
			places[i] = (*any)(&values[i])
		}
		if err := rows.Scan(places...); err != nil {
			return err
		}
		if err := appender.AppendRow(values...); err != nil {
			return err
		}
	}
	return rows.Err()
}
