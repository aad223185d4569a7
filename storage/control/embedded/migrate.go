package embedded

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/weirhq/weir/storage/control"
)

// fromKeys makes objects of the keys that version 1 knew alone.
const fromKeys = `
DROP INDEX keys_of;
ALTER TABLE keys RENAME TO objects;
ALTER TABLE objects RENAME COLUMN key TO value;
ALTER TABLE objects DROP COLUMN project;
ALTER TABLE objects ADD COLUMN kind TEXT NOT NULL DEFAULT 'key';
ALTER TABLE objects ADD COLUMN name TEXT NOT NULL DEFAULT '';
` + schema + `
INSERT INTO lists (n, list, org, kind)
	SELECT n, 'project/' || (CAST(value AS TEXT) ->> 'project'), org, kind FROM objects WHERE (CAST(value AS TEXT) ->> 'project') <> '';
INSERT OR IGNORE INTO lists (n, list, org, kind)
	SELECT n, 'scope/' || scope.value, org, kind FROM objects, json_each(CAST(objects.value AS TEXT), '$.scopes') AS scope;`

// migrate makes the file one of the present version.
func (l *Log) migrate() error {
	tx, err := l.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	var version int
	if err := tx.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch version {
	case 0, 2:
		_, err = tx.Exec(schema)
	case 1:
		err = migrateKeys(tx)
	default:
		err = fmt.Errorf("the file is of version %d, which a newer Weir has written", version)
	}
	if err == nil {
		err = addChecksums(tx)
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// migrateKeys reads a file of version 1. The projects that keys name are made.
func migrateKeys(tx *sql.Tx) error {
	if _, err := tx.Exec(fromKeys); err != nil {
		return err
	}
	if err := addChecksums(tx); err != nil { // before projects are made
		return err
	}
	rows, err := tx.Query("SELECT DISTINCT org, substr(list, 9) FROM lists WHERE list LIKE 'project/%'")
	if err != nil {
		return err
	}
	defer rows.Close()
	var events []control.Event
	var orgs []string
	for rows.Next() {
		var org, label string
		if err := rows.Scan(&org, &label); err != nil {
			return err
		}
		e, err := (&control.Organisation{Name: org, By: control.Actor{Key: "weir"}}).ProjectCreated(label)
		if err != nil {
			return err
		}
		events, orgs = append(events, e), append(orgs, org)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for i := range events {
		if err := apply(context.Background(), tx, orgs[i], &events[i]); err != nil {
			return err
		}
	}
	return nil
}
