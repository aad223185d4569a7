package agentlog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// summary is all that readers tell.
func summary(t *testing.T, r *Reader) string {
	t.Helper()
	if err := r.Update(time.Time{}); err != nil {
		t.Fatal(err)
	}
	calls, reports := r.Calls(time.Time{})
	var s strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&s, "%s %v %+v %s %s %s %s\n", c.ID, c.At.UTC(), c.Usage, c.Model, c.Session, c.Project, c.SubAgent)
	}
	return fmt.Sprintf("%s%+v", &s, reports)
}

// However files change, a reader with an index, one that goes on reading and one that begins anew
// tell the same.
func TestReaderGoesOn(t *testing.T) {
	dir := home(t, nil)
	index := filepath.Join(dir, "cache", "index")
	claudeFile, codexSession := filepath.Join(dir, ".claude", "projects", "p", "s.jsonl"), filepath.Join(dir, ".codex", "sessions", "rollout-1.jsonl")
	for _, path := range []string{claudeFile, codexSession} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	texts := map[string]string{claudeFile: "", codexSession: ""}
	codexLines := strings.SplitAfter(codexFile, "\n")
	going := new(Reader)
	for step := range 100 {
		path := []string{claudeFile, codexSession}[random.IntN(2)]
		text := texts[path]
		switch random.IntN(12) {
		case 0: // it loses its end
			text = text[:random.IntN(len(text)+1)]
		case 1: // another one has its name, perhaps with the same size
			text = strings.ReplaceAll(text, "msg_1", "msg_x")
		case 2:
			text = ""
		default: // it grows, perhaps by a part of a line
			more := fmt.Sprintf("%s{\"usage\"\n", claudeLine("s", fmt.Sprintf("msg_%d", random.IntN(step+1)), "r", fmt.Sprint(step), ""))
			if path == codexSession {
				more = codexLines[random.IntN(len(codexLines))]
				more = strings.ReplaceAll(more, `"output_tokens":80`, fmt.Sprintf(`"output_tokens":%d`, step))
			}
			text += more[:len(more)-random.IntN(2)*random.IntN(len(more)+1)]
		}
		texts[path] = text
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		// Some file systems tell times less than a clock's tick apart from none.
		if err := os.Chtimes(path, time.Time{}, time.Unix(1_700_000_000+int64(step), 0)); err != nil {
			t.Fatal(err)
		}
		if text == "" && random.IntN(2) == 0 {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		want := summary(t, new(Reader))
		if got := summary(t, going); got != want {
			t.Fatalf("step %d: %s\nwant %s", step, got, want)
		}
		saved := Open(index)
		if got := summary(t, saved); got != want {
			t.Fatalf("step %d, with an index: %s\nwant %s", step, got, want)
		}
		if err := saved.Save(); err != nil {
			t.Fatal(err)
		}
	}
}

// What was read of a file is not read again, and what was taken is not taken again. An index that
// cannot be used or written is as none.
func TestIndex(t *testing.T) {
	other := `{"type":"user","message":"` + strings.Repeat("x", 8192) + "\"}\n" // longer than what tells that a file has grown
	dir := home(t, map[string]string{
		".claude/projects/p/s.jsonl": claudeLine("s", "msg_1", "r", "1", "") + other + claudeLine("s", "msg_2", "r", "2", ""),
	})
	path, index := filepath.Join(dir, ".claude", "projects", "p", "s.jsonl"), filepath.Join(dir, "cache", "weir", "index")
	check := func(r *Reader, want ...string) {
		t.Helper()
		if err := r.Update(time.Time{}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range r.Take() {
			got = append(got, fmt.Sprint(strings.Fields(c.ID)[2], " ", c.Usage.Output.N))
		}
		if !slices.Equal(got, want) {
			t.Errorf("taken: %q, want %q", got, want)
		}
	}
	save := func(r *Reader) {
		t.Helper()
		if err := r.Save(); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	reader := Open(index)
	check(reader, "msg_1 1", "msg_2 2")
	check(reader)
	save(reader)
	saved := read(index)
	if strings.Contains(saved, "Done") {
		t.Error("the index has what the agent said")
	}
	if info, err := os.Stat(index); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}

	// The first line changes, which only a reader of the whole file would notice.
	first := claudeLine("s", "msg_1", "r", "1", "")
	write(path, strings.Repeat(" ", len(first)-1)+"\n"+read(path)[len(first):]+claudeLine("s", "msg_2", "r", "9", "")+claudeLine("s", "msg_3", "r", "3", ""))
	for range 2 { // it was not saved that these were taken
		reader = Open(index)
		check(reader, "msg_2 9", "msg_3 3")
		if calls, _ := reader.Calls(time.Time{}); len(calls) != 3 {
			t.Errorf("%d calls", len(calls))
		}
	}
	save(reader)
	check(Open(index))

	for name, text := range map[string]string{
		"short": saved[:len(saved)/2], "empty": "", "damaged": strings.Replace(saved, "msg_2", "msg_4", 1), "other": "no index",
	} {
		write(index, text)
		if r := Open(index); len(r.files) != 0 {
			t.Errorf("a %s index is used", name)
		}
	}
	reader = Open(filepath.Join(path, "index")) // below a file
	check(reader, "msg_2 9", "msg_3 3")
	if err := reader.Save(); err == nil {
		t.Error("an index is saved below a file")
	}
}
