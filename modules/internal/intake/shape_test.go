package intake

import "testing"

func TestShape(t *testing.T) {
	for body, want := range map[string][2]int{
		`{}`:                             {1, 1},
		`{"a":[1,2,{"b":"],[{"}],"c":0}`: {6, 3},
		`{"a":"\\","b":"\"[["}`:          {2, 1},
		`["\\\"[",[[]]]`:                 {4, 3},
	} {
		if values, depth := shape([]byte(body)); values != want[0] || depth != want[1] {
			t.Errorf("%s has %d values in %d levels, want %v", body, values, depth, want)
		}
	}
}
