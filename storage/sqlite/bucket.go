package sqlite

// bucketBits are those of a key that stand below its bucket: 2.3 hours of created_at.
// The schema and queries have the number as well, as SQLite uses an index on an
// expression where it reads the same.
const bucketBits = 43

// bucketOf is the bucket of a key.
func bucketOf(n int64) int64 { return n >> bucketBits }

// Without statistics SQLite passes over an index whose first column is not compared.
// These compare it with each bucket that has requests, in their order, which also is the
// order of the keys: going from one to the next takes a microsecond, and a month has
// some 300.
const (
	buckets = `(WITH RECURSIVE some (bucket) AS (
		SELECT max(n) >> 43 FROM requests
		UNION ALL SELECT (SELECT max(n) FROM requests WHERE n < some.bucket << 43) >> 43 FROM some WHERE some.bucket IS NOT NULL
	) SELECT bucket FROM some WHERE bucket IS NOT NULL)`
	inAnyBucket = "bucket IN " + buckets
	// inBuckets takes the first key and the last one.
	inBuckets = `bucket IN (WITH RECURSIVE some (bucket, first) AS (
		SELECT max(n) >> 43, ? FROM requests WHERE n <= ?
		UNION ALL SELECT (SELECT max(n) FROM requests WHERE n < some.bucket << 43 AND n >= first) >> 43, first FROM some WHERE some.bucket IS NOT NULL
	) SELECT bucket FROM some WHERE bucket IS NOT NULL)`
)
