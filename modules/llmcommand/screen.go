package llmcommand

import (
	"bytes"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

// onScreen returns where commands write their output. What callers have recorded must not drive
// a terminal, in whatever format it is shown.
func onScreen(f *os.File) io.Writer {
	if !term.IsTerminal(int(f.Fd())) { // one may have no width
		return f
	}
	return &screen{File: f}
}

// screen is a terminal that gets lines of harmless characters.
type screen struct {
	*os.File
	rest []byte // the beginning of a character whose end has not been written yet
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	text := append(s.rest, p...)
	length := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				length -= i
			}
			break
		}
	}
	_, err := s.File.Write(bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return harmless(r)
	}, text[:length]))
	s.rest = text[length:]
	return len(p), err
}
