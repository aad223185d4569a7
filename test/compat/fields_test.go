package compat

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestFieldsOfRequests holds the list of fields that may name what a provider keeps, fetches or
// runs against the types that the vendors publish: each field of a type is in the list. -update
// adds those that are not, to be decided.
func TestFieldsOfRequests(t *testing.T) {
	if !*withClients {
		t.Skip("needs -compat and Python")
	}
	const list = "../../modules/internal/money/bound/fields.txt"
	out, err := exec.Command(python[0], "python/fields.py").Output()
	if err != nil {
		t.Fatalf("python/fields.py: %v (README.md says what to install)", err)
	}
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	listed := make(map[string]bool)
	for _, line := range lines {
		if column := strings.Fields(line); len(column) == 3 {
			listed[column[0]+" "+column[2]] = true
		}
	}
	for field := range strings.Lines(string(out)) {
		api, name, _ := strings.Cut(strings.TrimSpace(field), " ")
		if listed[api+" "+name] {
			continue
		}
		t.Errorf("%s: the field '%s' is in no list", api, name)
		lines = append(lines, api+" undecided "+name)
	}
	if *update {
		begin := slices.IndexFunc(lines, func(line string) bool { return line != "" && line[0] != '#' })
		slices.SortStableFunc(lines[begin:], func(a, b string) int { return slices.Compare(key(a), key(b)) })
		if err := os.WriteFile(list, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// key is by what the list is sorted: the API and the field.
func key(line string) []string {
	column := strings.Fields(line)
	return []string{column[0], column[2]}
}
