package storage

import (
	"fmt"
	"strings"

	"github.com/weirhq/weir/internal/nearest"
)

// Unknown says that a name is none of those known: with the nearest one, or with
// all of them when none is near.
func Unknown[T ~string](what, name string, known []T) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	if near := nearest.Name(name, names); near != "" {
		return fmt.Sprintf("unknown %s %s (did you mean %q?)", what, quote(name), near)
	}
	return fmt.Sprintf("unknown %s %s (known are %s)", what, quote(name), strings.Join(names, ", "))
}
