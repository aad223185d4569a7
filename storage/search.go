package storage

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/plugins/transcript"
)

// ContentSearcher is a Contents that rules out content without reading it.
type ContentSearcher interface {
	// Search begins a search for the content of records that a filter matches.
	Search(f Filter) ContentSearch
}

// ContentSearch rules out content, segment by segment. It is not safe for concurrent use.
type ContentSearch interface {
	// Candidates reports of the entries of a segment whether the filter can be true of a record
	// with their content. The function is nil if it can be true of none.
	Candidates(segment uint64) func(ordinal uint32) bool
}

// RequiredTexts returns texts that content must contain for a leaf to be true of its record, folded:
// SearchTexts yields each of them within a text. There are none if the leaf can be true of any
// content, or of no content.
func RequiredTexts(l *Leaf) []string {
	if l.Field.Content == 0 || l.Op.Negative() || !utf8.ValidString(l.Text) {
		return nil
	}
	var texts []string
	add := func(text string) {
		if text != "" {
			texts = append(texts, string(appendFolded(nil, []byte(text))))
		}
	}
	split := func(text string) {
		if l.Field.body != nil {
			add(text)
			return
		}
		// The fields for texts join texts by newlines, and read an invalid escape as U+FFFD or U+0000.
		for text := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == utf8.RuneError || r == 0 }) {
			add(text)
		}
	}
	if l.Op != Like && l.Op != ILike {
		split(l.Text)
		return texts
	}
	var literal strings.Builder
	for pattern := l.Text; pattern != ""; {
		r, n := utf8.DecodeRuneInString(pattern)
		switch {
		case r == '%' || r == '_':
			split(literal.String())
			literal.Reset()
		case r == '\\' && len(pattern) > n:
			pattern = pattern[n:]
			r, n = utf8.DecodeRuneInString(pattern)
			fallthrough
		default:
			literal.WriteRune(r)
		}
		pattern = pattern[n:]
	}
	split(literal.String())
	return texts
}

// SearchTexts yields the texts of content in which RequiredTexts are looked for, folded. It keeps
// its memory between them: a text is valid until the next one.
type SearchTexts struct {
	unescaper transcript.Unescaper
	folded    []byte
}

// Part yields the texts of a part of a content.
func (t *SearchTexts) Part(c *Content, part ContentPart, yield func(text []byte)) {
	if part == ResponsePart {
		t.Piece(c.Response.Data, c.Response.Data, yield)
		return
	}
	t.Piece(c.Request.Data, c.Request.Data, yield)
	t.Inputs(c, yield)
}

// Inputs yields the inputs of a prompt template.
func (t *SearchTexts) Inputs(c *Content, yield func(text []byte)) {
	for _, value := range c.Inputs {
		t.fold([]byte(value), yield)
	}
}

// Piece yields the texts of a piece of a body. If the piece begins or ends within an escape of the
// body, some of its letters there are not those of the body.
func (t *SearchTexts) Piece(body, piece []byte, yield func(text []byte)) {
	unescaped := t.unescaper.Unescape(piece)
	t.fold(unescaped, yield)
	// The fields for texts find JSON in any body.
	if len(unescaped) != len(piece) && !transcript.StartsJSON(body) {
		t.fold(piece, yield)
	}
}

func (t *SearchTexts) fold(text []byte, yield func(text []byte)) {
	t.folded = appendFolded(t.folded[:0], text)
	yield(t.folded)
}

// appendFolded appends a text with its letters folded: texts that differ in case alone are the
// same then. If a text contains another one, but for case, so does the folded text.
func appendFolded(b, text []byte) []byte {
	b = slices.Grow(b, len(text))
	for i := 0; i < len(text); {
		if len(text)-i >= 8 { // eight bytes at once if they are ASCII
			if eight := binary.LittleEndian.Uint64(text[i:]); eight&highBits == 0 {
				small := (eight + ('\x80'-'a')*lowBits) &^ (eight + ('\x7f'-'z')*lowBits) & highBits
				b = binary.LittleEndian.AppendUint64(b, eight-small>>2) // 'a' - 'A' is a quarter of a high bit
				i += 8
				continue
			}
		}
		if c := text[i]; c < utf8.RuneSelf {
			b = append(b, foldedASCII[c])
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError {
			b = append(b, text[i:i+n]...)
		} else {
			b = utf8.AppendRune(b, fold(r))
		}
		i += n
	}
	return b
}

// lowBits and highBits have the lowest and the highest bit of each of eight bytes.
const (
	lowBits  = 0x0101010101010101
	highBits = 0x80 * lowBits
)

var foldedASCII = func() (folded [utf8.RuneSelf]byte) {
	for c := range folded {
		folded[c] = byte(fold(rune(c)))
	}
	return folded
}()
