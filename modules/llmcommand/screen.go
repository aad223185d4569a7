package llmcommand

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
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
	_, err := s.File.Write(bytes.Map(harmlessInLines, text[:length]))
	s.rest = text[length:]
	return len(p), err
}

// harmlessInLines is harmless for a text that has lines.
func harmlessInLines(r rune) rune {
	if r == '\n' || r == '\t' {
		return r
	}
	return harmless(r)
}

// harmlessError is an error that does not drive the terminal that shows it: gateways and issuers
// choose words of it.
type harmlessError struct{ error }

func (e harmlessError) Error() string { return strings.Map(harmlessInLines, e.error.Error()) }
func (e harmlessError) Unwrap() error { return e.error }

// makeErrorsHarmless changes the errors of a command and of those below it.
func makeErrorsHarmless(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := run(cmd, args); err != nil {
				return harmlessError{err}
			}
			return nil
		}
	}
	for _, below := range cmd.Commands() {
		makeErrorsHarmless(below)
	}
}
