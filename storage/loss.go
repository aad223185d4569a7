package storage

// Loss counts entries of the journal that were given up, so that none is lost
// in silence.
type Loss struct {
	// Reason is one of the Lost constants.
	Reason string
	// Count counts versions of records, and annotations; of LostContent, records.
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
	LostRejected      = "rejected"       // the backend can never store it
	// LostContent: bodies were deleted or damaged. The records are there without them.
	LostContent = "content"
	// LostInterrupted: the process was killed before the exchange came to its
	// end, or its handler failed.
	LostInterrupted = "interrupted"
)

// LossReasons are all of them.
var LossReasons = []string{LostJournalFull, LostJournalFailed, LostCorrupt, LostRejected, LostContent, LostInterrupted}
