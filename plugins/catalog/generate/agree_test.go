package main

import (
	"testing"

	"github.com/weirhq/weir/plugins/catalog"
)

// prices reads a price list in the catalogue's own schema.
func prices(t *testing.T, list string) []catalog.Price {
	t.Helper()
	c, err := catalog.Parse([]byte(`{"providers":[{"id":"p","models":[{"id":"m","prices":` + list + `}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := c.Lookup("p", "m")
	return m.Prices
}

func TestDecide(t *testing.T) {
	for _, tt := range []struct{ name, first, second, third, want string }{
		{"one source", `[{"input":1,"output":2}]`, `[]`, `[]`, `[{"input":1,"output":2,"source":"first"}]`},
		{"the first of two that differ", `[{"input":1,"output":2}]`, `[{"input":3,"output":4}]`, `[]`,
			`[{"input":1,"output":2,"source":"first"}]`},
		{"one that has no standard price, for it is overridden", `[{"tier":"flex","input":1,"output":2}]`, `[{"input":3,"output":4}]`, `[]`,
			`[{"input":3,"output":4,"source":"second"}]`},
		{"a tier that the first one lacks, for it is overridden", `[{"input":2}]`, `[{"input":2},{"tier":"flex","input":1}]`, `[{"input":2},{"tier":"flex","input":3}]`,
			`[{"input":2,"source":"first"},{"tier":"flex","input":1,"source":"second"}]`},
		{"long inputs differ", `[{"input":1,"output":2}]`, `[{"input":1,"output":2}]`,
			`[{"input":1,"output":2},{"input_above":200000,"input":2,"output":3}]`, `[{"input":1,"output":2,"source":"first"}]`},
		{"bounds of long inputs are written differently", `[{"input":1},{"input_above":199999,"input":2}]`, `[{"input":5}]`,
			`[{"input":1},{"input_above":200000,"input":2}]`, `[{"input":1,"source":"first"},{"input_above":199999,"input":2,"source":"first"}]`},
		{"rounding is no difference", `[{"input":"0.3333","output":1}]`, `[{"input":5,"output":5}]`, `[{"input":"0.333","output":1}]`,
			`[{"input":"0.3333","output":1,"source":"first"}]`},
		{"rates that one lacks come from who agrees", `[{"input":1,"output":2}]`, `[{"input":3,"output":4,"cache_read":"0.9"}]`,
			`[{"input":1,"output":2,"cache_read":"0.1"}]`, `[{"input":1,"output":2,"cache_read":"0.1","source":"first, third"}]`},
		{"a price of some hours is enough to agree", `[{"input":1},{"hours":"01:00-04:00","input":2}]`, `[{"input":2}]`, `[{"input":5}]`,
			`[{"input":1,"source":"first"},{"hours":"01:00-04:00","input":2,"source":"first"}]`},
		{"what held earlier stays, and is not added to", `[{"input":9},{"from":"2026-01-01","input":1}]`, `[{"input":1,"cache_read":"0.1"}]`, `[]`,
			`[{"input":9,"source":"first"},{"from":"2026-01-01","input":1,"cache_read":"0.1","source":"first, second"}]`},
		{"what will hold does not count yet", `[{"input":1},{"from":"2027-01-01","input":9}]`, `[{"input":5}]`, `[{"input":1}]`,
			`[{"input":1,"source":"first"},{"from":"2027-01-01","input":9,"source":"first"}]`},
		{"a tier is added by who agrees on the standard one", `[{"input":2}]`, `[{"input":2},{"tier":"flex","input":1}]`, `[]`,
			`[{"input":2,"source":"first"},{"tier":"flex","input":1,"source":"second"}]`},
		{"no tier is taken from who does not", `[{"input":2}]`, `[{"input":3},{"tier":"flex","input":1}]`, `[{"input":2}]`,
			`[{"input":2,"source":"first"}]`},
		{"long inputs in a tier are unknown where nobody prices them",
			`[{"input":2},{"input_above":200000,"input":4},{"tier":"flex","input":1}]`, `[]`, `[]`,
			`[{"input":2,"source":"first"},{"input_above":200000,"input":4,"source":"first"},{"tier":"flex","input":1,"source":"first"},
				{"tier":"flex","input_above":200000,"source":"first"}]`},
		{"what a tier charges for cached tokens is not guessed",
			`[{"input":2,"cache_read":"0.2"},{"tier":"flex","input":1},{"tier":"batch","input":1,"cache_read":"0.1"}]`, `[]`, `[]`,
			`[{"input":2,"cache_read":"0.2","source":"first"},{"tier":"batch","input":1,"cache_read":"0.1","source":"first"},{"tier":"flex","input":1,"cache_read":"unknown","source":"first"}]`},
		{"nor what long inputs do",
			`[{"input":2,"output_image":"20"},{"input_above":200000,"input":4}]`, `[]`, `[]`,
			`[{"input":2,"output_image":"20","source":"first"},{"input_above":200000,"input":4,"output_image":"unknown","source":"first"}]`},
		{"nobody reads a cache for nothing", `[{"input":2,"cache_read":"0"},{"tier":"batch","input":1}]`, `[]`, `[{"input":"0","cache_read":"0"}]`,
			`[{"input":2,"source":"first"},{"tier":"batch","input":1,"source":"first"}]`},
		{"nobody knows", `[]`, `[]`, `[]`, `[]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := decide([]quote{
				{"first", prices(t, tt.first)}, {"second", prices(t, tt.second)}, {"third", prices(t, tt.third)},
			})
			want := prices(t, tt.want)
			if len(got) != len(want) {
				t.Fatalf("got %+v\nwant %+v", got, want)
			}
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("price %d is %+v\nwant %+v", i, got[i], want[i])
				}
			}
		})
	}
}
