// Package nearest finds the known name that is nearest to a mistyped one.
package nearest

import "strings"

// Name is the one of known that is spelt almost like name, whatever the letter
// case, - and _, or "" when none is. Of several the nearest wins, then the first.
func Name(name string, known []string) string {
	const longest = 64 // bytes; nobody mistypes that
	if len(name) > longest {
		return ""
	}
	plain := strings.NewReplacer("-", "", "_", "")
	spelling := func(s string) string { return strings.ToLower(plain.Replace(s)) }
	name = spelling(name)
	best, edits := "", max(1, len(name)/3)+1
	for _, k := range known {
		if d := Distance(name, spelling(k)); d < edits {
			best, edits = k, d
		}
	}
	return best
}

// Distance is the number of bytes to insert, delete, replace or swap with their
// neighbour to make b of a
// (https://en.wikipedia.org/wiki/Damerau-Levenshtein_distance).
func Distance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range len(b) {
			replaced := above[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, row[j]+1, above[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
