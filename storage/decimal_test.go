package storage_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Numbers of 64 bits compare as they are, not as the nearest floating-point numbers.
func TestNumbersCompareExactly(t *testing.T) {
	operators := []storage.Operator{storage.Equals, storage.NotEquals, storage.GTE, storage.LTE, storage.LT, storage.GT}
	texts := []string{
		"0", "-0", "0.0e9999999999", "1", "-1", "0.5", "-0.5", "1.0", "10e-1", "1e-400", "0.001", "1e-9", "2.5e-9", "9007199254740992", "9007199254740993", "9007199254740993.0",
		"9223372036854775807", "9223372036854775808", "-9223372036854775807", "-9223372036854775808", "9223372036.854775807", "9223372036.8547758065", "1e300", "-1e300", "1e18", "123456789.0123456789",
	}
	numbers := []int64{0, 1, -1, 2, 3, 1e6, 1 << 53, 1<<53 + 1, 1e18, 123456789012345678, math.MaxInt64 - 1, math.MaxInt64, -math.MaxInt64}
	for name, unit := range map[string]int64{"prompt_tokens": 1, "cost": 1e9} {
		for _, text := range texts {
			d, err := storage.ParseDecimal(text)
			if err != nil {
				t.Fatal(err)
			}
			want, ok := new(big.Rat).SetString(text)
			if !ok {
				want = new(big.Rat) // the exponent of 0 is too large for it
			}
			for _, n := range numbers {
				r := new(storage.Record)
				if unit == 1 {
					r.Usage.Input = plugins.Known(n)
				} else {
					r.Cost = plugins.KnownCost(plugins.Nanodollars(n))
				}
				order := big.NewRat(n, unit).Cmp(want)
				for _, op := range operators {
					l := &storage.Leaf{Field: storage.LookupField(storage.RequestResponse, name), Op: op, Number: d}
					if got, want := storage.Match(l, r, nil), storage.Compare(op, int64(order), 0); got != want {
						t.Errorf("%d/%d %s %s is %v", n, unit, op, text, got)
					}
				}
			}
		}
	}
}

// Sums that differ by less than floating-point numbers do are in order, and so are the
// pages after a cursor.
func TestSumsSortExactly(t *testing.T) {
	var records storage.Records
	for i := range 4 {
		records.All = append(records.All, &storage.Record{Org: "acme", UserID: fmt.Sprint(3 - i), Cost: plugins.KnownCost(plugins.Nanodollars(1<<60 + int64(i)))})
	}
	q := &storage.UserQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always, Limit: 1, Sort: []storage.UserSort{{Key: storage.UserCost}}}
	for i := range 4 {
		page, err := q.Answer(t.Context(), records)
		if err != nil || len(page.Users) != 1 || page.Users[0].ID != fmt.Sprint(3-i) {
			t.Fatalf("page %d: %+v, %v", i, page, err)
		}
		if err := q.ContinueAfter(q.Cursor(&page.Users[0]).String()); err != nil {
			t.Fatal(err)
		}
	}
}

// A cursor whose sums are floating-point numbers, as older versions made them, would be at
// another place.
func TestOlderCursorsAreRefused(t *testing.T) {
	q := &storage.UserQuery{Sort: []storage.UserSort{{Key: storage.UserCost, Desc: true}}}
	if err := q.ContinueAfter("TAn9dQdyMjAuMDAxA2FubgA"); !errors.Is(err, storage.ErrCursor) {
		t.Errorf("%v, want ErrCursor", err)
	}
}
