package sqlite

import (
	"database/sql/driver"
	"slices"

	"github.com/weirhq/weir/storage"
)

// table is what aggregates read of all records, in memory. Its copies do not
// change when it does.
type table struct {
	requests, scores []chunk
	orgs             internedTexts
	texts            [columnCount]internedTexts // by textsOf
	// removals counts the requests that were taken away.
	removals int
	newest   *newest // of all copies
}

// internedText is a text that a column of a chunk refers to. A session is one of an
// organisation, with a name.
type internedText struct {
	org      uint32
	id, name string
}

// internedTexts numbers texts from 1; 0 stands for no text.
type internedTexts struct {
	all     []internedText
	numbers map[internedText]uint32 // of what index has seen and number has added; nil in copies
	bytes   int
}

// optional is number, and 0 for the empty text.
func (t *internedTexts) optional(x internedText) uint32 {
	if x.id == "" {
		return 0
	}
	return t.number(x)
}

func (t *internedTexts) number(x internedText) uint32 {
	if number, ok := t.numbers[x]; ok {
		return number
	}
	number := t.append(x)
	t.numbers[x] = number
	return number
}

// append appends a text, which number does not find, and answers its number.
func (t *internedTexts) append(x internedText) uint32 {
	t.all = append(t.all, x)
	t.bytes += len(x.id) + textBytes
	return uint32(len(t.all))
}

// set replaces the text of a number, which number does not find.
func (t *internedTexts) set(number uint32, x internedText) {
	old := &t.all[number-1]
	t.bytes += len(x.id) - len(old.id)
	*old = x
}

// index lets number find all texts.
func (t *internedTexts) index() {
	t.numbers = make(map[internedText]uint32, len(t.all))
	for i, x := range t.all {
		t.numbers[x] = uint32(i + 1)
	}
}

// text is the text of a number.
func (t *internedTexts) text(number int) (x internedText) {
	if number > 0 {
		x = t.all[number-1]
	}
	return x
}

// find is the number of an organisation, 0 if there is none.
func (t *internedTexts) find(id string) uint32 {
	return uint32(1 + slices.IndexFunc(t.all, func(x internedText) bool { return x.id == id }))
}

// textsIn are those that a column refers to.
func (t *table) textsIn(column int) *internedTexts { return &t.texts[textsOf[column]] }

// Bytes of memory, about.
const (
	textBytes = 130   // of a text and its number, besides its letters
	rowBytes  = 8 + 4 // of a row, besides its columns
)

// size is the memory of the table in bytes, about.
func (t *table) size() int {
	size := t.orgs.bytes
	for _, chunks := range [...][]chunk{t.requests, t.scores} {
		for i := range chunks {
			size += chunkRows * chunks[i].rowBytes()
		}
	}
	for i := range t.texts {
		size += t.texts[i].bytes
	}
	return size
}

// stale tells whether most of the texts may be of requests that are gone.
func (t *table) stale() bool {
	live := chunkRows
	for i := range t.requests {
		live += t.requests[i].live
	}
	return t.removals > live
}

// change is a record before and after; either is nil when there was none.
type change struct{ old, new *row }

// apply follows a change.
func (t *table) apply(c change) {
	replaced := c.old != nil && c.new != nil
	if !replaced || !alike(c.old, c.new) {
		if c.old != nil {
			t.remove(c.old.n)
		}
		if c.new != nil {
			t.add(c.new)
		}
	}
	if replaced && c.old.n == c.new.n && c.old.ScoresColumn() == c.new.ScoresColumn() {
		return
	}
	if c.old != nil {
		t.removeScores(c.old)
	}
	if c.new != nil {
		t.addScores(c.new)
	}
}

// alike is true of records that a table tells apart by their scores alone.
func alike(a, b *row) bool {
	if a.n != b.n || a.Org != b.Org || a.SessionName != b.SessionName {
		return false
	}
	for _, c := range cachedColumns {
		switch {
		case c.names != "" && c.text(a) != c.text(b):
			return false
		case c.names == "" && !sameValue(c.encode(a), c.encode(b)):
			return false
		}
	}
	return true
}

// sameValue compares values, ids by whether there is one.
func sameValue(a, b driver.Value) bool {
	_, isID := a.([]byte)
	_, alsoID := b.([]byte)
	return isID && alsoID || !isID && !alsoID && a == b
}

// add appends a record without its scores.
func (t *table) add(r *row) {
	org := t.orgs.number(internedText{id: r.Org})
	c := room(&t.requests)
	c.begin(r.n, org)
	for i, column := range cachedColumns {
		switch {
		case i == sessionColumn:
			c.append(i, t.textsIn(i).optional(internedText{org, r.SessionID, r.SessionName}))
		case column.names != "":
			c.append(i, t.textsIn(i).optional(internedText{id: column.text(r)}))
		default:
			c.keep(i, column.encode(r))
		}
	}
}

// addScores appends the scores of a record.
func (t *table) addScores(r *row) {
	for name, value := range r.Scores {
		t.addScore(r, name, value)
	}
	if value, ok := r.Score(storage.FeedbackScore); ok {
		t.addScore(r, storage.FeedbackScore, value)
	}
}

func (t *table) addScore(r *row, name string, value float64) {
	c := room(&t.scores)
	c.begin(r.n, t.orgs.number(internedText{id: r.Org}))
	c.append(scoreColumn, t.textsIn(scoreColumn).number(internedText{id: name}))
	c.scores = append(c.scores, value)
}

// room is the chunk that takes the next row.
func room(chunks *[]chunk) *chunk {
	switch all := *chunks; {
	case len(all) == 0:
		*chunks = append(all, chunk{})
	case len(all[len(all)-1].n) >= chunkRows:
		*chunks = append(all, all[len(all)-1].next())
	}
	return &(*chunks)[len(*chunks)-1]
}

// remove takes a record away, without its scores.
func (t *table) remove(n int64) {
	t.removals++
	t.requests = without(t.requests, n, 1)
}

// removeScores takes the scores of a record away.
func (t *table) removeScores(r *row) {
	if r.Scored() {
		scores := len(r.Scores)
		if r.Feedback != nil {
			scores++
		}
		t.scores = without(t.scores, r.n, scores)
	}
}

// without deletes so many rows of a request, the newest chunks first.
func without(chunks []chunk, n int64, rows int) []chunk {
	for i := len(chunks) - 1; i >= 0 && rows > 0; i-- {
		rows -= chunks[i].delete(n)
		if chunks[i].live == 0 {
			chunks = slices.Delete(chunks, i, i+1)
		}
	}
	return chunks
}

// copy is the table as it is now, for reading.
func (t *table) copy() *table {
	c := *t
	c.requests, c.scores = share(t.requests), share(t.scores)
	c.orgs.numbers = nil
	for i := range c.texts {
		c.texts[i].numbers = nil
	}
	return &c
}

func share(chunks []chunk) []chunk {
	for i := range chunks {
		chunks[i].shared = true
	}
	return slices.Clone(chunks)
}
