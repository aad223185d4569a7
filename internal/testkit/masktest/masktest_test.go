package masktest

import (
	"net/url"
	"strings"
	"testing"
)

// Find finds each value, in each spelling.
func TestFind(t *testing.T) {
	for n := range 1000 {
		for _, value := range Numbered(n * 997) {
			for _, spelling := range []string{value, url.QueryEscape(value), url.PathEscape(value), url.PathEscape(url.PathEscape(value)), strings.ToUpper(value)} {
				if len(Find([]byte("a "+spelling+" b"))) == 0 {
					t.Errorf("%s is not found", spelling)
				}
			}
		}
	}
	if found := Find([]byte(strings.Repeat("planted [EMAIL] 1337 133.5 4999999 ", 10))); len(found) > 0 {
		t.Errorf("found: %v", found)
	}
}
