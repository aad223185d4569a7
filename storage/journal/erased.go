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
	// key is nil if this journal has erased none.
	key  []byte
	set  erasedSet
	file erasedFile
	// others are what other journals with the same backend have erased, by their keys, and what this one has and
	// its file lacks.
	others map[string]erasedSet
}

// erasedSet has the scopes of erased records. It never changes. It is in parts, each smaller than the one
// before it, so that neither a larger set nor a scope costs much.
type erasedSet []map[erasedHash]storage.ErasureScope

// with returns s with more entries, as the file has them.
func (s erasedSet) with(entries []byte) erasedSet {
	part := make(map[erasedHash]storage.ErasureScope, len(entries)/erasedEntry)
	for ; len(entries) >= erasedEntry; entries = entries[erasedEntry:] {
		hash := erasedHash(entries)
		part[hash] = max(part[hash], storage.ErasureScope(entries[erasedHashBytes]))
	}
	n := len(s)
	for ; n > 0 && len(s[n-1]) <= 2*len(part); n-- {
		for hash, scope := range s[n-1] {
			part[hash] = max(part[hash], scope)
		}
	}
	return append(s[:n:n], part)
}

// scope is what was erased of a record, 0 if it was not.
func (s erasedSet) scope(hash erasedHash) (scope storage.ErasureScope) {
	for _, part := range s {
		scope = max(scope, part[hash])
	}
	return scope
}

// lacking returns the entries of other that s does not have.
func (s erasedSet) lacking(other erasedSet) (entries []byte) {
	for _, part := range other {
		for hash, scope := range part {
			if s.scope(hash) < scope {
				entries = append(append(entries, hash[:]...), byte(scope))
			}
		}
	}
	return entries
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
	return &erasedRecords{key: text[:erasedKeyBytes], set: erasedSet(nil).with(text[erasedKeyBytes:is.Size]), file: is}, nil
}

// with returns r with more records of an organisation, or conversations, and writes them to the file.
func (r *erasedRecords) with(dir, org string, ids [][]byte, scope storage.ErasureScope) (*erasedRecords, error) {
	if len(ids) == 0 {
		return r, nil
	}
	next := &erasedRecords{}
	if r != nil {
		*next = *r
	}
	var text []byte
	if next.key == nil {
		next.key = next.newKey()
		text = append(text, next.key...)
	}
	before := len(text)
	for _, id := range ids {
		hash := hashErased(next.key, org, id)
		text = append(append(text, hash[:]...), byte(scope))
	}
	at := next.file.Size
	next.file = erasedFile{at + int64(len(text)), crc32.Update(next.file.Sum, castagnoli, text)}
	next.set = next.set.with(text[before:])
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

// newKey returns a key that another journal has, or a new one: with the same key, one hash of a record serves for all
// that these journals have erased.
func (r *erasedRecords) newKey() []byte {
	if keys := slices.Collect(maps.Keys(r.others)); len(keys) > 0 {
		return []byte(slices.Min(keys))
	}
	key := make([]byte, erasedKeyBytes)
	rand.Read(key)
	return key
}

// withOthers returns r with what another journal has erased.
func (r *erasedRecords) withOthers(key string, entries []byte) *erasedRecords {
	next := &erasedRecords{}
	if r != nil {
		*next = *r
	}
	next.others = maps.Clone(next.others)
	if next.others == nil {
		next.others = make(map[string]erasedSet)
	}
	next.others[key] = next.others[key].with(entries)
	return next
}

// lacking returns the entries of a set that r lacks, by a key.
func (r *erasedRecords) lacking(key string, set erasedSet) []byte {
	if r == nil {
		return erasedSet(nil).lacking(set)
	}
	has := r.others[key]
	if key == string(r.key) {
		has = slices.Concat(r.set, has)
	}
	return has.lacking(set)
}

// hashErased returns the keyed hash of a record's id, or of what conversationHashed returns.
func hashErased(key []byte, org string, id []byte) (hash erasedHash) {
	mac := hmac.New(sha256.New, key)
	mac.Write(id)
	mac.Write([]byte(org))
	copy(hash[:], mac.Sum(nil))
	return hash
}

// conversationHashed is what is hashed of a conversation's id. No record's id has its first bytes and,
// in its organisation, the zero at the end.
func conversationHashed(id string) []byte { return append([]byte(id), 0) }

// lookup is what was erased of what is hashed, 0 if nothing was.
func (r *erasedRecords) lookup(org string, id []byte) (scope storage.ErasureScope) {
	if r.key != nil {
		hash := hashErased(r.key, org, id)
		scope = max(r.set.scope(hash), r.others[string(r.key)].scope(hash))
	}
	for key, set := range r.others {
		if key != string(r.key) {
			scope = max(scope, set.scope(hashErased([]byte(key), org, id)))
		}
	}
	return scope
}

// hasConversation reports whether a conversation was erased as a whole.
func (r *erasedRecords) hasConversation(org, id string) bool {
	return r != nil && r.lookup(org, conversationHashed(id)) > 0
}

// scope is what was erased of a record, 0 if it was not.
func (r *erasedRecords) scope(key storage.RecordKey) storage.ErasureScope {
	if r == nil {
		return 0
	}
	id := key.ID // on the heap, for the hash, only here
	return r.lookup(key.Org, id[:])
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
	all := &erasedRecords{key: other.key, set: other.set}
	if r != nil {
		if !hmac.Equal(r.key, other.key) {
			return nil, errors.New("they are those of another store")
		}
		lacking := r.set.lacking(other.set)
		if len(lacking) == 0 {
			return r, nil
		}
		all.set = r.set.with(lacking)
	}
	return all, nil
}

// write writes the file anew.
func (r *erasedRecords) write(dir string) error {
	text := append(slices.Clone(r.key), erasedSet(nil).lacking(r.set)...)
	r.file = erasedFile{int64(len(text)), crc32.Checksum(text, castagnoli)}
	return replaceFile(filepath.Join(dir, erasedName), text)
}
