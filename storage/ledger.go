package storage

// Ledger is what a backend knows of all exchanges since its store began. With
// what the journal holds, it accounts for each of them: it has a record, or is
// declared lost.
type Ledger struct {
	// Recorded counts the exchanges that were given a record, whether or not
	// retention has deleted it since.
	Recorded int64
	// Number is the highest Record.Number among them.
	Number uint64
	// Losses are those of all batches, in the order of their times.
	Losses []Loss
}

// Loss counts entries of the journal that were given up, so that none is lost
// in silence.
type Loss struct {
	// Reason is one of the Lost constants.
	Reason string
	// Count counts versions of records, and late facts.
	Count int64
	// Exchanges counts the exchanges that have no record for it.
	Exchanges int64
	// From and To are the times of the first and the last.
	From, To Timestamp
}

// Reasons of a Loss.
const (
	LostJournalFull   = "journal_full"   // the journal reached its size limit
	LostJournalFailed = "journal_failed" // the disk refused the write
	LostCorrupt       = "corrupt"        // a journal entry failed its checksum
	// LostInterrupted: the process was killed before the exchange came to its
	// end, or its handler failed.
	LostInterrupted = "interrupted"
)
