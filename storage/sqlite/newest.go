package sqlite

// newest finds the sessions that began last.
type newest struct{}
