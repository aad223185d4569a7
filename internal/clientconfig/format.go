package clientconfig

import (
	"bytes"
	"strings"
)

// span is the place of a value in a text, in bytes.
type span struct{ start, end int }

// format edits texts of a kind. The text of a value is what find spans: as in the file, but for the
// indentation of its lines after the first.
type format interface {
	// find returns where the value at a path is, and false if the path has no value. The error
	// says what is wrong with the text, or why a value cannot be edited.
	find(text []byte, path []string) (span, bool, error)
	// insert adds a value at a path that has none. It creates the objects on the way.
	insert(text []byte, path []string, value string) ([]byte, error)
	// remove removes the value at a path.
	remove(text []byte, path []string) ([]byte, error)
}

// splice returns text with what s spans replaced. The new text gets the line ends of text.
func splice(text []byte, s span, with string) []byte {
	if bytes.Contains(text, []byte("\r\n")) {
		with = strings.ReplaceAll(strings.ReplaceAll(with, "\r\n", "\n"), "\n", "\r\n")
	}
	return bytes.Join([][]byte{text[:s.start], []byte(with), text[s.end:]}, nil)
}

// lineStart returns the start of the line that contains a position.
func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// lineEnd returns the start of the line after the one that contains a position.
func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// indentation returns the blanks with which the line of a position begins.
func indentation(text []byte, at int) string {
	line := text[lineStart(text, at):at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// indent puts blanks in front of each line but the first.
func indent(s, blanks string) string {
	return strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n"+blanks)
}

// appendLines adds lines to the end of a text, whose last line may lack its end.
func appendLines(text []byte, lines string) []byte {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		lines = "\n" + lines
	}
	return splice(text, span{len(text), len(text)}, lines)
}
