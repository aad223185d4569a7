package agentlog

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var full = flag.Bool("full", false, "read 2 GB of sessions")

// TestReadSize reads 2 GB once, and then only what was added.
func TestReadSize(t *testing.T) {
	if !*full {
		t.Skip("it writes 2 GB: go test ./internal/agentlog -run ReadSize -full")
	}
	dir := home(t, nil)
	result := strings.Repeat(`    if err != nil {\n\t\treturn fmt.Errorf(\"read %s: %w\", name, err)\n\t}\n`, 150)
	lines := strings.SplitAfter(codexFile, "\n")
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	write := func(path string, turns int, turn func(n int) string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(f)
		for n := range turns {
			_, err = w.WriteString(turn(n)) // Flush repeats an error
		}
		if err := errors.Join(err, w.Flush(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	claudeTurn := func(session int) func(int) string {
		return func(n int) string { // a tool's result, and an answer in two lines
			at = at.Add(time.Second)
			answer := strings.Replace(claudeLine(fmt.Sprint("session-", session), fmt.Sprintf("msg_%d_%d", session, n), fmt.Sprintf("req_%d_%d", session, n), "40", ""), "2026-11-28T10:00:00.000Z", at.Format(time.RFC3339), 1)
			return fmt.Sprintf(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"%s"}]},"timestamp":%q}`, result, at.Format(time.RFC3339)) + "\n" +
				answer + strings.Replace(answer, "Done", result[:len(result)/5], 1)
		}
	}
	codexTurn := func(session int) func(int) string {
		return func(n int) string {
			if n == 0 {
				return strings.Replace(lines[0], "codex-1", fmt.Sprint("codex-", session), 1) + lines[1]
			}
			return fmt.Sprintf(`{"timestamp":"2026-11-28T11:00:05.000Z","type":"response_item","payload":{"type":"function_call_output","output":"%s"}}`, result) + "\n" +
				strings.ReplaceAll(lines[3], `"input_tokens":1000,`, fmt.Sprintf(`"input_tokens":%d,`, 1000*n))
		}
	}
	claudePath := func(n int) string {
		return filepath.Join(dir, ".claude", "projects", fmt.Sprint("p", n%20), fmt.Sprint(n, ".jsonl"))
	}
	// cpu measures the processor time that something takes on all cores.
	cpu := func(what string, most time.Duration, do func()) {
		t.Helper()
		used := func() time.Duration {
			var u syscall.Rusage
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
				t.Fatal(err)
			}
			return time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		before := used()
		do()
		took := used() - before
		if t.Logf("%s: %v", what, took); took > most {
			t.Errorf("%s takes more than %v", what, most)
		}
	}
	const sessions, answers = 800, 800 * (130 + 49)
	for n := range sessions {
		write(claudePath(n), 130, claudeTurn(n))
		write(filepath.Join(dir, ".codex", "sessions", "2026", fmt.Sprintf("rollout-%d.jsonl", n)), 50, codexTurn(n))
	}
	var reader *Reader
	take := func(want int) func() {
		return func() {
			t.Helper()
			if err := reader.Update(time.Time{}); err != nil {
				t.Fatal(err)
			}
			if n := len(reader.Take()); n != want {
				t.Errorf("%d calls, want %d", n, want)
			}
		}
	}
	index := filepath.Join(dir, "cache", "index")
	reader = Open(index)
	cpu("all", 20*time.Second, take(answers))
	cpu("nothing new", 50*time.Millisecond, take(0))
	write(claudePath(7), 1, claudeTurn(sessions))
	cpu("a line more", 50*time.Millisecond, take(1))
	cpu("to save the index", time.Second, func() {
		if err := reader.Save(); err != nil {
			t.Fatal(err)
		}
	})
	write(claudePath(7), 1, claudeTurn(sessions+1))
	cpu("a new start", time.Second, func() { reader = Open(index) })
	cpu("the first calls", 200*time.Millisecond, take(1))
}
