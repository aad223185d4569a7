package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/weirhq/weir/storage/columnar"
)

// writtenRecords is how many records of a benchmark's database are written as Weir
// writes them; the rest are copies of these.
const writtenRecords = 500_000

// multiply copies the records of the database, each copy after the one before in time.
// A copy has sessions of its own, half of them of users that none before has, unless the users are
// few developers.
func multiply(path string, copies int) (err error) {
	// Whoever is interrupted begins again.
	c, err := openNew(path, "PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "PRAGMA cache_size = -524288")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	names, err := c.integer(context.Background(), "SELECT max(id) FROM names")
	if err != nil {
		return err
	}
	first, err := c.integer(context.Background(), "SELECT min(n) FROM requests")
	if err != nil {
		return err
	}
	last, err := c.integer(context.Background(), "SELECT max(n) FROM requests")
	if err != nil {
		return err
	}
	statements := func(do ...string) {
		for _, s := range do {
			if err == nil {
				_, err = c.exec(s)
			}
		}
	}
	statements(
		"DROP INDEX requests_request_id", "DROP INDEX requests_user", "DROP INDEX requests_session", "DROP INDEX requests_root",
	)
	columns := columnList(slices.DeleteFunc(slices.Clone(requestColumns), func(c column) bool {
		return slices.Contains([]string{"responded_at", "user", "session", "parent", "root", "cache_reference", "attempt_of", "request_id", sumColumn}, c.name)
	}), "")
	user := "user + iif(session & 1, ?3, 0)"
	if *benchmarkPeople > 0 {
		user = "user"
	}
	id := "CAST(unhex(printf('%012x70', (n + ?1) >> 20)) || randomblob(9) AS BLOB)" // as orderedID
	if *benchmarkUnordered {
		id = "randomblob(16)"
	}
	for i := int64(1); i < int64(copies) && err == nil; i++ {
		later := i * columnar.FirstKey(columnar.CreatedAt(last)-columnar.CreatedAt(first)+1)
		more := func(query string, args ...driver.Value) {
			if err == nil {
				_, err = c.exec(query, args...)
			}
		}
		ids := i * (names + 1)
		more("WITH copies AS MATERIALIZED (SELECT id, kind, iif(kind = 'session', lower(hex(randomblob(18))), name || '-' || ?2) AS name, seen"+
			" FROM names WHERE id <= ?4 AND kind IN ('user', 'session'))"+
			" INSERT INTO names (id, kind, name, hash, seen) SELECT id + ?1, kind, name, name_hash(CAST(name AS BLOB)), seen + ?3 FROM copies", ids, i, int64(columnar.CreatedAt(later)), names)
		more("INSERT INTO requests (n, "+columns+", responded_at, user, session, request_id) SELECT n + ?1, "+columns+
			", responded_at + ?2, "+user+", session + ?3, "+id+" FROM requests WHERE n <= ?4 ORDER BY n",
			later, int64(columnar.CreatedAt(later)), ids, last)
		more("INSERT INTO details (n, dialect, attempt, request_bytes, response_bytes, request_omitted, response_omitted, request_truncated, response_truncated, updated_at, properties, scores)"+
			" SELECT n + ?, dialect, attempt, request_bytes, response_bytes, 0, 0, 0, 0, updated_at + ?, properties, scores FROM details WHERE n <= ? ORDER BY n",
			later, int64(columnar.CreatedAt(later)), last)
		more("INSERT INTO labels (bucket, label, n) SELECT (n + ?1) >> 43, label, n + ?1 FROM labels WHERE n <= ?2 ORDER BY 1, label, n", later, last)
		more("INSERT INTO scores (name, n, value) SELECT name, n + ?, value FROM scores WHERE n <= ? ORDER BY name, n", later, last)
	}
	if err == nil {
		_, err = c.exec("UPDATE names SET seen = seen + ? WHERE id <= ? AND kind <> 'session'",
			int64(copies-1)*int64(columnar.CreatedAt(last)-columnar.CreatedAt(first)+1), names)
	}
	statements(
		"INSERT OR IGNORE INTO buckets SELECT DISTINCT n >> 43 FROM requests",
		"CREATE UNIQUE INDEX requests_request_id ON requests (request_id, org)",
		"CREATE INDEX requests_user ON requests (n >> 43, user, org) WHERE user IS NOT NULL",
		"CREATE INDEX requests_session ON requests (session, org) WHERE session IS NOT NULL",
		"CREATE INDEX requests_root ON requests (root, org) WHERE root IS NOT NULL",
	)
	return err
}
