package mask

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/redact"
)

// span is a match. value is what it reads as, for a pseudonym.
type span struct {
	from, to int
	kind     detector
	number   bool // a number of JSON, whose label needs quotes
	value    string
}

// finder finds matches, and keeps its memory between bodies.
type finder struct {
	m       *Masker
	body    []byte
	spans   []span
	dropped []span // what goes if anything matches
	base    int    // where the text that is read stands in the body
	bare    bool   // it is no text of JSON
	name    bool   // all labels are pseudonyms
	tokens  int    // up to where the text that is read is known to begin no JSON Web Token

	read, again, plain reading
	groups             []group
	number             number
}

var finders = sync.Pool{New: func() any { return new(finder) }}

// maxKept bounds the memory that a finder keeps.
const maxKept = 1 << 20

func (f *finder) free() {
	clear(f.spans)
	f.m, f.body, f.number, f.spans, f.dropped = nil, nil, number{digits: f.number.digits[:0]}, f.spans[:0], f.dropped[:0]
	for _, r := range []*reading{&f.read, &f.again, &f.plain} {
		if cap(r.text) > maxKept {
			*r = reading{}
		}
	}
	finders.Put(f)
}

// masks reports whether a kind is masked in what is read.
func (f *finder) masks(kind detector) bool {
	k := &f.m.kinds[kind]
	return k.on && (k.names || !f.name)
}

func (f *finder) pseudonym(k *kind) bool { return f.name || k.pseudonym }

func (m *Masker) find(body []byte, inJSON, name bool) *finder {
	f := finders.Get().(*finder)
	f.m, f.body, f.name = m, body, name
	if !inJSON {
		f.text(body, 0, false)
		return f
	}
	for at := 0; at < len(body); {
		quote := bytes.IndexByte(body[at:], '"')
		if quote < 0 {
			quote = len(body) - at
		}
		f.numbers(body[at:at+quote], at)
		if at += quote + 1; at >= len(body) {
			break
		}
		end := redact.TextEnd(body, at)
		f.text(body[at:end], at, true)
		at = f.dropTokens(body[at:end], end+1)
	}
	return f
}

// dropTokens leaves out what has an answer's text again token by token or word by word, where no
// detector finds a value that is in several of them. at is where the member's name ends; it
// returns where to read on.
func (f *finder) dropTokens(name []byte, at int) int {
	list, ok := tokenLists[string(name)]
	if !ok {
		return at
	}
	from := at
	for from < len(f.body) && bytes.IndexByte([]byte(" \t\r\n:"), f.body[from]) >= 0 {
		from++
	}
	if from == at || from >= len(f.body) || f.body[from] != '{' && f.body[from] != '[' {
		return at
	}
	var value json.RawMessage
	if json.NewDecoder(bytes.NewReader(f.body[from:])).Decode(&value) != nil ||
		list != "" && !gjson.GetBytes(value, "0."+list).Exists() { // somebody's own list
		return at
	}
	to := from + len(value)
	f.dropped = append(f.dropped, span{from: from, to: to, kind: tokens})
	return to
}

// tokenLists are members that have lists of tokens or words, and a member of those whose name
// tells nothing.
// https://platform.openai.com/docs/api-reference/chat/object
// https://platform.openai.com/docs/api-reference/audio/verbose-json-object
// https://ai.google.dev/api/generate-content#LogprobsResult
var tokenLists = map[string]string{"logprobs": "", "logprobsResult": "", "words": "word"}

// numbers finds numbers between texts of JSON.
func (f *finder) numbers(raw []byte, base int) {
	if len(raw) < minNumber {
		return
	}
	f.bare, f.base = true, base
	f.detect(raw, nil, nil)
	f.bare = false
}

// text finds matches in a text. Texts may have texts in JSON within, such as the arguments of
// tools: what is escaped there is read, too.
func (f *finder) text(raw []byte, base int, escaped bool) {
	f.base = base
	if bytes.IndexByte(raw, '\\') < 0 {
		f.detectBoth(raw, nil, nil)
		return
	}
	text, outer := raw, (*reading)(nil)
	if escaped {
		f.read.unescape(raw, false)
		text, outer = f.read.text, &f.read
	}
	f.detectBoth(text, outer, nil)
	if bytes.IndexByte(text, '\\') >= 0 {
		f.again.unescape(text, true)
		f.detectBoth(f.again.text, outer, &f.again)
	}
}

// detectBoth finds the matches of a text as it is, and as it reads in plain characters.
func (f *finder) detectBoth(text []byte, outer, inner *reading) {
	f.detect(text, outer, inner)
	if isPlain(text) {
		return
	}
	f.plain.plain(text, inner)
	f.detect(f.plain.text, outer, &f.plain)
}
