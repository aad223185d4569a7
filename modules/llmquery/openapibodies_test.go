package llmquery_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// recordVariety records enough for defaults to make a difference.
func (s *site) recordVariety() {
	const day = 24 * 3_600_000
	j := s.journal("default")
	for i := range storage.Timestamp(60) {
		name := fmt.Sprint("v", i)
		r := &storage.Record{
			ID: uuid.Must(uuid.NewV7()), Org: "default", UserID: name, SessionID: name,
			CreatedAt: 1_790_000_000_000 + i*day/2, RespondedAt: 1_790_000_000_000 + i*day/2 + i*i,
			Cost: plugins.KnownCost(plugins.Nanodollars(i * i * 1e6)),
		}
		if err := errors.Join(
			j.Append(r, storagetest.Kept(r, &storage.Content{Inputs: map[string]string{"n": name}})),
			j.AppendAnnotation(&storage.Annotation{Org: "default", RequestID: r.ID, At: r.CreatedAt, Scores: map[string]float64{"quality": float64(i)}}),
		); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := j.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// manualNames are the names in the manual that could be fields.
func manualNames(t *testing.T) (names []string) {
	manual, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile("[`\"]([a-z]+[A-Za-z]*)[`\"]").FindAllSubmatch(manual, -1) {
		names = append(names, string(match[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func between(s, after, before string) string {
	_, s, _ = strings.Cut(s, after)
	s, _, _ = strings.Cut(s, before)
	return s
}

// sameNames compares a list with the names at a pointer.
func (d *description) sameNames(t *testing.T, pointer, list string) {
	t.Helper()
	described := slices.Collect(maps.Keys(mapOf(d.at(pointer))))
	choices, _ := d.at(pointer).([]any)
	for _, choice := range choices {
		described = append(described, choice.(string))
	}
	taken := strings.Split(list, ", ")
	slices.Sort(taken)
	slices.Sort(described)
	if !slices.Equal(taken, described) {
		t.Errorf("%s: taken are %q, described %q", pointer, taken, described)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
