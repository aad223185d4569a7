package journal

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Erasure removes some records, or a part of them, from the journal's files and from the backend,
// and afterwards proves that it did. It has the values by which the records were chosen only in Filter and EncryptedFilter.
type Erasure struct {
	ID uuid.UUID
	// Org is the organisation whose records these are.
	Org string
	// Scope is what is removed of the records; 0, of an earlier version of Weir, is EraseContent.
	Scope storage.ErasureScope `json:",omitempty"`
	// RequestedAt is when the records were chosen, RequestedBy is the id of the API
	// key, or the beginning of its hash.
	RequestedAt storage.Timestamp
	RequestedBy string
	// Searched are the fields and operators of the filter.
	Searched []string
	// Records counts the records: of EraseContent, those that had content. Bytes are the bytes of
	// their bodies as they were sent.
	Records, Bytes int64
	// Items counts the items that the records had added to conversations.
	Items int64 `json:",omitempty"`
	// Erased counts the records that are erased so far: of EraseContent, those whose content is in
	// no segment any more, else those that the backend has erased.
	Erased int64
	// DoneAt is when the last file was written, 0 if some are left.
	DoneAt storage.Timestamp
	// Held are the records that some of Holds keep: they are erased once none does.
	Held  []uuid.UUID `json:",omitempty"`
	Holds []string    `json:",omitempty"`
	// Left are the entries in segments that are not written yet, by segment.
	Left map[uint64][]uint32 `json:",omitempty"`
	// Find is true while records are left to erase in the backend, and to find there after a start.
	Find bool `json:",omitempty"`
	// FindContent is true while the backend has to be asked where the content of the records is, as
	// after a restore: else Left says it.
	FindContent bool `json:",omitempty"`
	// Scan is true while sealed segments are left to search for all versions of the records: the
	// backend knows only where the content of the last one stands.
	Scan bool `json:",omitempty"`
	// Unidentified counts the entries in sealed segments that do not say whose they are, as those of
	// Weir 0.1.0: they may be earlier versions of the records.
	Unidentified int64 `json:",omitempty"`
	// CopiesRemain is true if the backend said storage.ErrCopiesRemain.
	CopiesRemain bool `json:",omitempty"`
	// Segment is the newest segment that was raw when the records were chosen, 0 if none was. It is
	// sealed, and so without these, before the erasure is done.
	Segment uint64 `json:",omitempty"`

	// Filter chooses the records that other nodes had not written to the backend when the erasure was
	// requested. It is nil once they have, or without other nodes.
	Filter json.RawMessage `json:",omitempty"`
	// EncryptedFilter is Filter after that, until no node that joins can bring such records any more.
	EncryptedFilter []byte `json:",omitempty"`
	// FlushRequest is the flush that all other nodes have to fulfil, 0 for none. The backend erases the
	// records again then, because until then nodes may write them again.
	FlushRequest int64 `json:",omitempty"`
	// Silent are the nodes that were not waited for.
	Silent []string `json:",omitempty"`

	// ids are the records to erase in the backend; without them, after a start, it is searched.
	ids []uuid.UUID
	// unusedErased is true once the backend has erased what only these records needed.
	unusedErased bool
	// rowsGone is true once the backend has erased the records, before all other nodes have flushed.
	rowsGone bool
}

// Chosen is a record that an erasure has chosen, with its content.
type Chosen struct {
	ID      uuid.UUID
	Content storage.ContentRef
}

// Erase begins an erasure of records that the backend has, and that no hold keeps. Filter chooses those that
// other nodes write to it later. It returns once the erasure is durable: from then on nobody reads the
// content. Maintenance does the rest, also after a crash.
func (j *Journal) Erase(e Erasure, chosen []Chosen) error {
	l := &j.erasures
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused != nil {
		return l.refused
	}
	before := l.records.Load()
	if l.j.nodes.backend == nil {
		e.Filter = nil
	} else {
		e.FlushRequest = l.flushRequest + 1
	}
	if err := l.take(&e, chosen); err != nil {
		return err
	}
	if len(chosen) == 0 && e.Filter == nil {
		e.DoneAt = l.j.options.now()
	}
	l.all = append(l.all, &e)
	if err := l.save(); err != nil {
		l.all = l.all[:len(l.all)-1]
		l.records.Store(before)
		return err
	}
	signal(j.maintenance.wake)
	return nil
}

// take adds records to those that an erasure has to erase. It needs the mutex of the erasures.
func (l *erasures) take(e *Erasure, chosen []Chosen) error {
	ids, hashed, content := make([]uuid.UUID, len(chosen)), make([][]byte, len(chosen)), make([]storage.ContentRef, 0, len(chosen))
	for i, c := range chosen {
		ids[i], hashed[i] = c.ID, c.ID[:]
		if c.Content != (storage.ContentRef{}) && !l.j.Shared() {
			content = append(content, c.Content)
		}
	}
	records, err := l.records.Load().with(l.j.dir, e.Org, hashed, max(e.Scope, storage.EraseContent))
	if err != nil {
		return fmt.Errorf("the list of erased records cannot be written: %w", err)
	}
	l.records.Store(records)
	e.add(leftOf(content))
	if len(chosen) == 0 {
		return nil
	}
	if l.j.nodes.backend != nil {
		e.FlushRequest = l.flushRequest + 1
	}
	if l.needsBackend(e) {
		if !e.Find || e.ids != nil {
			e.ids = slices.Concat(e.ids, ids)
		}
		e.Find, e.rowsGone = true, false
	}
	// What is appended or sealed from now on has nothing of them.
	e.DoneAt, e.Scan, e.Segment, e.unusedErased = 0, true, l.j.log.newestRaw(), false
	return nil
}

// settled reports whether nothing is left to choose, to find or to write.
func (e *Erasure) settled() bool {
	return e.Filter == nil && !e.Find && !e.Scan && len(e.Left) == 0
}

// Unflushed lists the nodes for which an erasure waits: they may have calls that the backend does not.
func (j *Journal) Unflushed(e *Erasure) (hosts []string) { return j.nodes.unflushed(e.FlushRequest) }

// needsBackend reports whether an erasure needs the backend: for what it erases of records and
// conversations, or because the backend keeps content.
func (l *erasures) needsBackend(e *Erasure) bool { return l.countsRows(e) || e.Items > 0 }

// countsRows reports whether a record counts as erased once the backend has erased it, and not once
// its content is in no segment.
func (l *erasures) countsRows(e *Erasure) bool {
	return e.Scope > storage.EraseContent || l.j.Shared()
}

// rowsErased notes that the backend has erased the records.
func (l *erasures) rowsErased(e *Erasure) {
	e.Find, e.FindContent, e.ids = false, false, nil
	if l.countsRows(e) {
		e.Erased = e.Records - int64(len(e.Held))
	}
}

// Erasures returns the erasures of an organisation, the newest first.
func (j *Journal) Erasures(org string) (all []Erasure) {
	j.erasures.mu.Lock()
	defer j.erasures.mu.Unlock()
	for _, e := range slices.Backward(j.erasures.all) {
		if e.Org == org {
			all = append(all, *e)
		}
	}
	return all
}

// Erased is what was erased of a record, 0 if it was not.
func (j *Journal) Erased(key storage.RecordKey) storage.ErasureScope {
	return j.erasures.records.Load().scope(key)
}

// ErasedConversation reports whether a conversation was erased as a whole.
func (j *Journal) ErasedConversation(org, id string) bool {
	return j.erasures.records.Load().hasConversation(org, id)
}

// leftOf sorts entries into their segments.
func leftOf(refs []storage.ContentRef) map[uint64][]uint32 {
	left := make(map[uint64][]uint32)
	for _, ref := range refs {
		left[ref.Segment] = append(left[ref.Segment], ref.Ordinal)
	}
	for _, ordinals := range left {
		slices.Sort(ordinals)
	}
	return left
}

// add adds entries to those that are left.
func (e *Erasure) add(left map[uint64][]uint32) {
	all := make(map[uint64][]uint32, len(e.Left)+len(left))
	maps.Copy(all, e.Left)
	for number, ordinals := range left {
		merged := slices.Concat(all[number], ordinals)
		slices.Sort(merged)
		all[number] = slices.Compact(merged)
	}
	e.Left = all
}

// contains reports whether a sorted list has all of some values.
func contains(sorted, values []uint32) bool {
	return !slices.ContainsFunc(values, func(v uint32) bool {
		_, found := slices.BinarySearch(sorted, v)
		return !found
	})
}
