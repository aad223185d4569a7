package compat

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/clients.md, of all that were run")

// table has what came of each row in each column: "" is that it works, else the reason
// why it does not. What was not tried is missing.
type table map[string]map[string]string

func (t table) set(row, column string, err error) {
	if t[row] == nil {
		t[row] = make(map[string]string)
	}
	t[row][column] = ""
	if err != nil {
		t[row][column] = err.Error()
	}
}

func (t table) same(row, a, b string) bool {
	x, hasX := t[row][a]
	y, hasY := t[row][b]
	return x == y && hasX == hasY
}

// markdown is the table, in which columns that are alike are one, and the reasons
// below it.
func (t table) markdown(rows, columns []string) string {
	var groups [][]string // of columns
	for _, column := range columns {
		i := slices.IndexFunc(groups, func(g []string) bool {
			return !slices.ContainsFunc(rows, func(row string) bool { return !t.same(row, g[0], column) })
		})
		if i < 0 {
			groups = append(groups, []string{column})
		} else {
			groups[i] = append(groups[i], column)
		}
	}
	var b strings.Builder
	b.WriteString("| |")
	for _, g := range groups {
		fmt.Fprintf(&b, " `%s` |", strings.Join(g, "`, `"))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(groups)) + "\n")
	var reasons []string
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |", row)
		for _, g := range groups {
			reason, known := t[row][g[0]]
			if reason == "" {
				b.WriteString(map[bool]string{true: " ✓ |", false: " |"}[known])
				continue
			}
			i := slices.Index(reasons, reason)
			if i < 0 {
				i = len(reasons)
				reasons = append(reasons, reason)
			}
			fmt.Fprintf(&b, " (%d) |", i+1)
		}
		b.WriteByte('\n')
	}
	for i, reason := range reasons {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d. %s\n", i+1, reason)
	}
	return b.String()
}

// checkPage holds the part of a page that is between the comments of its name against
// what it must be, or writes it.
func checkPage(t *testing.T, path, name, want string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := bytes.Cut(page, []byte("<!-- "+name+" -->\n"))
	got, after, ended := bytes.Cut(rest, []byte("<!-- end -->\n"))
	if !begun || !ended {
		t.Fatalf("%s has no part %q", path, name)
	}
	switch {
	case string(got) == want:
	case *update:
		whole := string(before) + "<!-- " + name + " -->\n" + want + "<!-- end -->\n" + string(after)
		if err := os.WriteFile(path, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what came of the test, which is below: go test ./test/compat -run %s -update writes it\n%s", path, t.Name(), want)
	}
}

// The page of the judges names the versions that the tests install.
func TestJudgesHaveTheirVersions(t *testing.T) {
	text := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	page := text("../../docs/judges.md")
	for _, judge := range []struct{ row, file, before string }{
		{"the types of OpenAI's Python library | ", "python/requirements.txt", "openai[realtime]=="},
		{"the types of Anthropic's Python library | ", "python/requirements.txt", "anthropic=="},
		{"by the authors of the protocol | npm ", "node/package.json", `"@modelcontextprotocol/conformance": "`},
		{"(https://github.com/dequelabs/axe-core) | npm ", "../browser/package.json", `"axe-core": "`},
	} {
		_, version, found := strings.Cut(text(judge.file), judge.before)
		version = version[:max(strings.IndexAny(version, "\"\n"), 0)]
		if !found || !strings.Contains(page, judge.row+version) {
			t.Errorf("docs/judges.md has not the version %q of %s after %q", version, judge.file, judge.row)
		}
	}
}
