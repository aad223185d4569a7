//go:build !race

package storage_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/internal/testkit/masktest"
	"github.com/weirhq/weir/storage"
)

// None of 10,000 values of each kind is left of the streams of all dialects, each split at another byte.
func TestPlantedValuesThatStreamsSplitAreMasked(t *testing.T) {
	m, err := mask.New([]*mask.Rule{{Kinds: mask.Kinds}})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for kind, generate := range masktest.Generators {
		left := 0
		for i := range 10_000 {
			s, value := streamed[i%len(streamed)], generate(random)
			text := "Take " + value + " today."
			split := 1 + i/len(streamed)%(len(text)-1)
			events := append(slices.Clone(s.head), fmt.Sprintf(s.event, text[:split]), fmt.Sprintf(s.event, text[split:]))
			r := &storage.Record{Dialect: s.dialect, Stream: true}
			masked, c := storage.Keep(r, storage.Content{Response: storage.Body{Type: s.contentType, Data: s.frame(t, events)}}, 1<<20).Masked(r, m)
			if got := string(c.Response.Data); strings.Contains(got, value) || !strings.Contains(got, "Take [") || !strings.Contains(got, "] today.") || !strings.Contains(string(masked.Masked), `"`+kind+`":1`) {
				if left++; left <= 5 {
					t.Errorf("%s, %q split at %d: %s, counted %s", s.dialect, value, split, got, masked.Masked)
				}
			}
		}
		if left > 0 {
			t.Errorf("%d values of the kind %s are left", left, kind)
		}
	}
}
