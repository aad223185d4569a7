package storage

import (
	"fmt"
	"strings"
)

// Unknown says that a name is none of those known: with the nearest one, or with
// all of them when none is near.
func Unknown[T ~string](what, name string, known []T) string {
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("unknown %s %s (did you mean %q?)", what, quote(name), near)
	}
	return fmt.Sprintf("unknown %s %s (known are %s)", what, quote(name), join(known))
}

// nearest is the known name with the fewest edits from name, "" if all are far.
func nearest[T ~string](name string, known []T) (near string) {
	plain := strings.NewReplacer("-", "", "_", "", ".", "")
	spelling := func(s string) string { return strings.ToLower(plain.Replace(cut(s))) }
	name = spelling(name)
	fewest := max(1, len(name)/3) + 1
	for _, k := range known {
		if n := edits(name, spelling(string(k))); n < fewest {
			near, fewest = string(k), n
		}
	}
	return near
}

// edits is the number of bytes to insert, delete, replace or swap with the next
// to make b of a.
func edits(a, b string) int {
	var before, above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, make([]int, len(b)+1)
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
