package llmcommand

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/spf13/cobra"
)

// A terminal gets the lines of each format, in whatever pieces they come, and nothing that
// drives it.
func TestScreen(t *testing.T) {
	const text = "id,user\n1,\"\x1b[31m\x1b]0;owned\a\u009b2J\u202eé\u7aef\t\r\x7f\"\n"
	const want = "id,user\n1,\"�[31m�]0;owned��2Jé\u7aef\t��\"\n"
	for size := 1; size <= len(text); size++ {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		s := &screen{File: w}
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			if written, err := s.Write(rest[:n]); written != n || err != nil {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		w.Close()
		if got, err := io.ReadAll(r); string(got) != want || err != nil {
			t.Fatalf("in pieces of %d bytes: %q, %v", size, got, err)
		}
		r.Close()
	}
	if f, err := os.Open(os.DevNull); err != nil || onScreen(f) != io.Writer(f) {
		t.Error("a file is no terminal", err)
	}
}

// The error of a command is shown, too, and keeps what it is of.
func TestErrorsAreHarmless(t *testing.T) {
	fails := func(*cobra.Command, []string) error {
		return fmt.Errorf("401 \x1b]0;owned\a:\n%w", io.ErrUnexpectedEOF)
	}
	above, below := &cobra.Command{RunE: fails}, &cobra.Command{Use: "below", RunE: fails}
	above.AddCommand(below)
	makeErrorsHarmless(above)
	for _, cmd := range []*cobra.Command{above, below} {
		if err := cmd.RunE(cmd, nil); err.Error() != "401 \ufffd]0;owned\ufffd:\nunexpected EOF" || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q", err)
		}
	}
}
