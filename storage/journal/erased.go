package journal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// erasedName is the file of the erased records in the journal's directory: a key, and then an
// entry for each record that an erasure has chosen, the keyed hash of its organisation and id with
// a scope, and for each conversation that went with them. The list of erasures says how much of the
// file holds.
const erasedName = "erased"

const (
	erasedKeyBytes = 32
	erasedEntry    = erasedHashBytes + 1
	// erasedHashBytes are enough for no other record to have the hash of an erased one.
	erasedHashBytes = 16
)

type erasedHash [erasedHashBytes]byte

// erasedRecords remembers which records were erased, and which conversations as a whole, so that
// neither a later version nor an import nor a backup brings them back. It never changes. A nil one has
// none.
type erasedRecords struct {
	key    []byte
	scopes map[erasedHash]storage.ErasureScope
	file   erasedFile
}

// erasedFile is how much of the file holds.
type erasedFile struct {
	Size int64
	Sum  uint32 // CRC-32C
}

// readErased reads the part of the file that holds.
func readErased(dir string, is erasedFile) (*erasedRecords, error) {
	if is.Size == 0 {
		return nil, nil
	}
	path := filepath.Join(dir, erasedName)
	text, err := os.ReadFile(path)
	if err == nil && (int64(len(text)) < is.Size || crc32.Checksum(text[:is.Size], castagnoli) != is.Sum) {
		err = errors.New("it is shorter than it was, or damaged")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := &erasedRecords{key: text[:erasedKeyBytes], scopes: make(map[erasedHash]storage.ErasureScope), file: is}
	r.add(text[erasedKeyBytes:is.Size])
	return r, nil
}

// add adds entries as the file has them.
func (r *erasedRecords) add(entries []byte) {
	for ; len(entries) >= erasedEntry; entries = entries[erasedEntry:] {
		hash, scope := erasedHash(entries), storage.ErasureScope(entries[erasedHashBytes])
		r.scopes[hash] = max(r.scopes[hash], scope)
	}
}

// with returns r with more records of an organisation, or conversations, and writes them to the file.
func (r *erasedRecords) with(dir, org string, ids [][]byte, scope storage.ErasureScope) (*erasedRecords, error) {
	if len(ids) == 0 {
		return r, nil
	}
	next := &erasedRecords{scopes: make(map[erasedHash]storage.ErasureScope)}
	var text []byte
	if r == nil {
		next.key = make([]byte, erasedKeyBytes)
		rand.Read(next.key)
		text = append(text, next.key...)
	} else {
		next.key, next.file, next.scopes = r.key, r.file, maps.Clone(r.scopes)
	}
	for _, id := range ids {
		hash := next.hash(org, id)
		text = append(append(text, hash[:]...), byte(scope))
	}
	at := next.file.Size
	next.file = erasedFile{at + int64(len(text)), crc32.Update(next.file.Sum, castagnoli, text)}
	if at == 0 {
		next.add(text[erasedKeyBytes:]) // before it is the key
	} else {
		next.add(text)
	}
	f, err := os.OpenFile(filepath.Join(dir, erasedName), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteAt(text, at)
	err = errors.Join(err, f.Truncate(next.file.Size), f.Sync(), f.Close())
	if err == nil {
		err = SyncDir(dir)
	}
	return next, err
}

// hash returns the keyed hash of a record's id, or of what conversationHashed returns.
func (r *erasedRecords) hash(org string, id []byte) (hash erasedHash) {
	mac := hmac.New(sha256.New, r.key)
	mac.Write(id)
	mac.Write([]byte(org))
	copy(hash[:], mac.Sum(nil))
	return hash
}

// conversationHashed is what is hashed of a conversation's id. No record's id has its first bytes and,
// in its organisation, the zero at the end.
func conversationHashed(id string) []byte { return append([]byte(id), 0) }

// hasConversation reports whether a conversation was erased as a whole.
func (r *erasedRecords) hasConversation(org, id string) bool {
	return r != nil && r.scopes[r.hash(org, conversationHashed(id))] > 0
}

// scope is what was erased of a record, 0 if it was not.
func (r *erasedRecords) scope(key storage.RecordKey) storage.ErasureScope {
	if r == nil {
		return 0
	}
	id := key.ID // on the heap, for the hash, only here
	return r.scopes[r.hash(key.Org, id[:])]
}

// apply removes from records what was erased of them: a restored segment may have it.
func (r *erasedRecords) apply(records []*storage.Record) []*storage.Record {
	if r == nil {
		return records
	}
	kept := make([]*storage.Record, 0, len(records))
	for _, record := range records {
		switch scope := r.scope(record.Key()); scope {
		case 0:
			kept = append(kept, record)
		case storage.EraseRecord:
		default:
			kept = append(kept, record.Erased(scope))
		}
	}
	return kept
}

// applyTo returns an annotation without what was erased: the items of an erased record, and every
// change of an erased conversation. The annotation itself stays as it is, because a backend may have it.
func (r *erasedRecords) applyTo(a *storage.Annotation) *storage.Annotation {
	if a.Conversation == nil || r == nil {
		return a
	}
	change := *a.Conversation
	switch {
	case r.hasConversation(a.Org, change.ID):
		change = storage.ConversationChange{ID: change.ID, Deleted: change.Deleted}
	case r.scope(storage.RecordKey{Org: a.Org, ID: change.Record}) > 0:
		change.Add, change.Items = nil, nil
	default:
		return a
	}
	remaining := *a
	remaining.Conversation = &change
	return &remaining
}

// TakeErasures has a journal that no process uses repeat the erasures that another directory of
// the same journal knows, and it does not: those that were requested after it was copied, and
// those that have taken more since, because a hold was lifted. It returns how many these are.
func TakeErasures(dir, from string) (taken int, err error) {
	l, err := lock(dir)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	have, err := readErasures(dir)
	if err != nil {
		return 0, err
	}
	later, err := readErasures(from)
	if err != nil {
		return 0, err
	}
	known := make(map[uuid.UUID]*Erasure)
	for _, e := range have.Erasures {
		known[e.ID] = e
	}
	for _, e := range later.Erasures {
		again := known[e.ID]
		switch {
		case again == nil:
			again = new(*e)
			again.Left, again.Segment = nil, 0
			have.Erasures = append(have.Erasures, again)
		case len(e.Held) < len(again.Held):
			again.Held, again.Holds = e.Held, e.Holds
		default:
			continue
		}
		again.Erased, again.DoneAt, again.Find, again.FindContent, again.Scan = 0, 0, true, true, true
		taken++
	}
	all, err := have.records.union(later.records)
	if err != nil {
		return 0, fmt.Errorf("the erasures of %s: %w", from, err)
	}
	if taken == 0 && all == have.records {
		return 0, nil
	}
	if all != have.records {
		if err := all.write(dir); err != nil {
			return 0, err
		}
		have.records, have.Records = all, all.file
	}
	have.Generation = max(have.Generation, later.Generation) + 1
	return taken, have.write(dir)
}

// union returns r with the records of another journal of the same origin, r itself if it has all.
func (r *erasedRecords) union(other *erasedRecords) (*erasedRecords, error) {
	if other == nil {
		return r, nil
	}
	all := &erasedRecords{key: other.key, scopes: maps.Clone(other.scopes)}
	if r != nil {
		if !hmac.Equal(r.key, other.key) {
			return nil, errors.New("they are those of another store")
		}
		for hash, scope := range r.scopes {
			all.scopes[hash] = max(all.scopes[hash], scope)
		}
		if maps.Equal(all.scopes, r.scopes) {
			return r, nil
		}
	}
	return all, nil
}

// write writes the file anew.
func (r *erasedRecords) write(dir string) error {
	text := slices.Clone(r.key)
	for hash, scope := range r.scopes {
		text = append(append(text, hash[:]...), byte(scope))
	}
	r.file = erasedFile{int64(len(text)), crc32.Checksum(text, castagnoli)}
	return replaceFile(filepath.Join(dir, erasedName), text)
}
