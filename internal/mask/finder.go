package mask

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/redact"
)

// span is a match.
type span struct {
	from, to  int
	kind      detector
	number    bool   // a number of JSON, whose label needs quotes
	pseudonym string // "" for a plain label
}

// finder finds matches, and keeps its memory between bodies.
type finder struct {
	m       *Masker
	body    []byte
	spans   []span
	dropped []span // what goes if anything matches
	base    int    // where the text that is read stands in the body
	bare    bool   // it is no text of JSON
	nesting nesting
	name    bool // all labels are pseudonyms
	tokens  int  // up to where the text that is read is known to begin no JSON Web Token
	ledBy   bool // what stands before the text decided about a match

	read, again, plain reading
	groups             []group
	number             number
	id                 textID // of the text that is looked up
	nonce              [12]byte
}

var finders = sync.Pool{New: func() any { return new(finder) }}

// maxKept bounds the memory that a finder keeps.
const maxKept = 1 << 20

func (f *finder) free() {
	clear(f.spans)
	f.nesting = nesting{}
	f.m, f.body, f.number, f.spans, f.dropped = nil, nil, number{digits: f.number.digits[:0]}, f.spans[:0], f.dropped[:0]
	for _, r := range []*reading{&f.read, &f.again, &f.plain} {
		if cap(r.text) > maxKept || cap(r.parts) > maxKept/16 {
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
		f.between(body[at:at+quote], at)
		if at += quote + 1; at >= len(body) {
			break
		}
		end := redact.TextEnd(body, at)
		f.textInJSON(body[at:end], at)
		f.nesting.member = body[at:end]
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

// between finds the numbers between the texts of JSON. If something else is there, it is a text: the
// body only begins as JSON does.
func (f *finder) between(raw []byte, base int) {
	f.bare, f.base = true, base
	defer func() { f.bare = false }()
	first := len(f.spans)
	for i := 0; i < len(raw); {
		n := 1
		switch c := raw[i]; {
		case c == '{' || c == '[':
			f.nesting.open(c)
		case c == '}' || c == ']':
			f.nesting.leave()
		case c == '-' || isDigit(c):
			n = f.bareNumber(raw, i)
			f.nesting.member = nil // it names one number
		case classes[c]&letterClass != 0:
			n = literal(raw[i:])
		case classes[c]&jsonClass == 0:
			n = 0
		}
		if n == 0 {
			f.bare, f.spans = false, f.spans[:first]
			f.text(raw, base, false)
			return
		}
		i += n
	}
}

// bareNumber finds what a number of JSON is, and returns the number's length, 0 if there is none.
// https://www.rfc-editor.org/rfc/rfc8259#section-6
func (f *finder) bareNumber(raw []byte, from int) int {
	digits := func(i int) int {
		for i < len(raw) && isDigit(raw[i]) {
			i++
		}
		return i
	}
	whole := from
	if raw[from] == '-' {
		whole++
	}
	to := digits(whole)
	if to == whole || raw[whole] == '0' && to > whole+1 {
		return 0
	}
	integer := to
	protocol := f.nesting.protocolNumber()
	if integer-whole >= minNumber && !protocol {
		f.numberAt(raw, whole, nil)
	}
	if byteAt(raw, to) == '.' {
		fraction := to + 1
		if to = digits(fraction); to == fraction {
			return 0
		}
	}
	if byteAt(raw, to)|0x20 == 'e' {
		exponent := to + 1
		if c := byteAt(raw, exponent); c == '+' || c == '-' {
			exponent++
		}
		if to = digits(exponent); to == exponent {
			return 0
		}
	}
	if c := byteAt(raw, to); isAlnum(c) || c == '.' || classes[c]&separatorClass != 0 && isDigit(byteAt(raw, to+separator(raw[to:]))) {
		return 0
	}
	if byteAt(raw, integer) != '.' && !protocol { // fractions are measurements; embedding vectors have thousands
		f.ownNumber(raw, from, to)
	}
	return to - from
}

// literal returns the length of the literal of JSON at the beginning, 0 if there is none.
func literal(raw []byte) int {
	for _, name := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(raw, []byte(name)) && !isAlnum(byteAt(raw, len(name))) && byteAt(raw, len(name)) != '.' {
			return len(name)
		}
	}
	return 0
}

// text finds matches in a text. Texts may have texts in JSON within, such as the arguments of
// tools: what is escaped there is read, too.
func (f *finder) text(raw []byte, base int, escaped bool) {
	f.base = base
	text, r := raw, (*reading)(nil)
	if escaped && bytes.IndexByte(raw, '\\') >= 0 {
		f.read.unescape(raw, nil, false)
		text, r = f.read.text, &f.read
	}
	f.detectAll(text, r)
	if bytes.IndexByte(text, '\\') >= 0 {
		f.again.unescape(text, r, true)
		f.detectAll(f.again.text, &f.again)
	}
}

// detectAll finds the matches of a text as it is, as it reads in plain characters, and as a form.
func (f *finder) detectAll(text []byte, r *reading) {
	f.detect(text, r)
	if isPlain(text) {
		return
	}
	if f.plain.plain(text, r) {
		f.detect(f.plain.text, &f.plain)
	}
	if f.plain.spaces() {
		f.detect(f.plain.text, &f.plain)
	}
}
