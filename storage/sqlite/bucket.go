package sqlite

// bucketBits are those of a key that stand below its bucket: 2.3 hours of created_at.
// The schema and queries have the number as well, as SQLite uses an index on an
// expression where it reads the same.
const bucketBits = 43

// bucketOf is the bucket of a key.
func bucketOf(n int64) int64 { return n >> bucketBits }

// SQLite finds nothing in an index whose first column is not compared. These compare it
// with each bucket, in their order, which also is the order of the keys. The plus makes
// SQLite read the buckets first: it would else go through the index and look for each in
// buckets.
const (
	anyBucket   = "(SELECT +bucket FROM buckets)"
	inAnyBucket = "bucket IN " + anyBucket
	// inBuckets takes the first one and the last one.
	inBuckets = "bucket IN (SELECT +bucket FROM buckets WHERE bucket BETWEEN ? AND ?)"
)

// bucket makes the bucket of a new request known.
func (w *writer) bucket(n int64) error {
	bucket := bucketOf(n)
	if w.bucketKnown && bucket == w.lastBucket {
		return nil
	}
	_, err := w.c.exec("INSERT OR IGNORE INTO buckets (bucket) VALUES (?)", bucket)
	w.lastBucket, w.bucketKnown = bucket, err == nil
	return err
}
