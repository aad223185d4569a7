//go:build !race

package reconcile

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Each difference is found at each source, and none is invented.
func TestPlantedDifferences(t *testing.T) {
	for _, p := range plants {
		for _, source := range sources {
			t.Run(p.name+"/"+source, func(t *testing.T) {
				s := newScene(source)
				p.plant(s)
				report := s.compare(t)
				checkListed(t, report, p.listed)
				if p.check != nil {
					p.check(t, report)
					return
				}
				want := p.wantAt(source)
				if found := reasonsOf(report); !slices.Equal(found, want) || report.Agrees != (len(want) == 0) {
					t.Errorf("found %q, expected %q: %+v", found, want, report.Differences)
				}
			})
		}
	}
}

func TestAllPlantedDifferencesAtOnce(t *testing.T) {
	for _, source := range sources {
		s := newScene(source)
		var want []string
		for _, name := range slices.Sorted(maps.Keys(furtherPlants)) {
			if p := furtherPlants[name]; p.provider == source && len(p.want) > 0 && name != "a key that is not named" {
				p.plant(s)
				want = append(want, p.want...)
			}
		}
		for _, p := range plants {
			if len(p.want) > 0 {
				p.plant(s)
				want = append(want, p.wantAt(source)...)
			}
		}
		found := reasonsOf(s.compare(t))
		slices.Sort(want)
		slices.Sort(found)
		if !slices.Equal(found, want) {
			t.Errorf("%s: found %q, expected %q", source, found, want)
		}
	}
}

func TestFurtherPlants(t *testing.T) {
	for name, tc := range furtherPlants {
		t.Run(name, func(t *testing.T) {
			s := newScene(tc.provider)
			tc.plant(s)
			report := s.compare(t)
			if found := reasonsOf(report); !slices.Equal(found, tc.want) {
				t.Errorf("found %q, expected %q: %+v", found, tc.want, report.Differences)
			}
			checkListed(t, report, tc.listed)
		})
	}
}

// The memory of a bill does not grow with the texts of its lines.
func TestExportOfManyLines(t *testing.T) {
	heading, line, _ := strings.Cut(cur, "\n")
	line, _, _ = strings.Cut(line, "\n")
	const lines = 50_000
	export := []io.Reader{strings.NewReader(heading + ",line_item_resource_id,note\n")}
	note := strings.Repeat("x", 2000) + "\n"
	for i := range lines {
		export = append(export, strings.NewReader(fmt.Sprintf("%s,%d,", line, i)), strings.NewReader(note))
	}
	bill := NewFileBill("bedrock")
	if err := bill.AddAWS(io.MultiReader(export...)); err != nil {
		t.Fatal(err)
	}
	if len(bill.Costs) != 1 || len(bill.Usage) != 1 || bill.Costs[0].Amount.Nanodollars != lines*400_000 || bill.Usage[0].Tokens[Input] != lines*1500 ||
		len(bill.exports.costs) != 1 || len(bill.exports.usage) != 1 || len(bill.exports.items) != 0 {
		t.Errorf("%d costs, %d usages: %+v", len(bill.Costs), len(bill.Usage), bill.Costs[0])
	}
}
