// Package nearest finds what a mistyped name was meant to be.
package nearest

import "strings"

// Name is the one of known that is spelt almost like name, whatever the letter
// case, or "" when none is. Of several the first wins.
func Name(name string, known []string) string {
	const longest = 64 // bytes; nobody mistypes that
	if len(name) > longest {
		return ""
	}
	best, edits := "", max(1, len(name)/4)+1
	for _, k := range known {
		if d := Distance(strings.ToLower(name), strings.ToLower(k)); d < edits {
			best, edits = k, d
		}
	}
	return best
}

// Distance is the number of bytes to insert, delete or replace to make b of a
// (https://en.wikipedia.org/wiki/Levenshtein_distance).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			edits := diagonal
			if a[i] != b[j] {
				edits = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], edits
		}
	}
	return row[len(b)]
}
