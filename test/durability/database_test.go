//go:build linux

package durability

import (
	"database/sql"

	_ "github.com/mattn/go-sqlite3" // the driver
)

// open opens the weir's database the way any other program might.
func (w *weir) open(options string) *sql.DB {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+w.database()+"?"+options)
	if err != nil {
		w.t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	w.t.Cleanup(func() { db.Close() })
	return db
}

// checkDatabase looks at the database with plain SQL: it must be whole, and
// have no record twice.
func (w *weir) checkDatabase() {
	w.t.Helper()
	db := w.open("mode=ro")
	for query, want := range map[string]string{
		"PRAGMA integrity_check":                                     "ok",
		"SELECT count(*) - count(DISTINCT request_id) FROM requests": "0",
	} {
		var got string
		if err := db.QueryRow(query).Scan(&got); err != nil || got != want {
			w.t.Errorf("%s: %s %v, want %s", query, got, err, want)
		}
	}
	db.Close()
}
