package money

import (
	"testing"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// Each row of the table, in its order.
func TestRules(t *testing.T) {
	stated, known := plugins.Usage{Input: plugins.Known(3), Output: plugins.Known(5)}, plugins.KnownCost(13)
	for _, c := range []struct {
		name string
		end  Ending
		want Rule
	}{
		{"refused", Ending{Status: 400}, AsStated},
		{"refused, with a usage", Ending{Status: 429, Stated: stated, Cost: known}, AsStated},
		{"a response in a socket that has not begun", Ending{Status: 200, Unbegun: true, Stream: true, Served: true}, AsStated},
		{"failed before a header", Ending{Status: 502, Broken: true, Provider: true}, AsStated},
		{"complete", Ending{Status: 200, Stated: stated, Cost: known, Final: true}, AsStated},
		{"complete, without a usage", Ending{Status: 200}, ByRequest},
		{"complete, without a price", Ending{Status: 200, Stated: stated, Final: true}, AtMaximum},
		{"a stream, complete, without a usage", Ending{Status: 200, Stream: true, Served: true}, ByRequest},
		{"reset after the usage", Ending{Status: 200, Broken: true, Provider: true, Stream: true, Served: true, Stated: stated, Cost: known, Final: true}, AsStated},
		{"left after the usage", Ending{Status: 200, Broken: true, Stream: true, Served: true, Stated: stated, Cost: known, Final: true}, AsStated},
		{"reset after a usage without a price", Ending{Status: 200, Broken: true, Stream: true, Served: true, Stated: stated, Final: true}, AtMaximum},
		{"broken off before its client has any of it", Ending{Status: 200, Broken: true, Provider: true, Stream: true}, AsStated},
		{"an object, broken off before its client has any of it", Ending{Status: 200, Broken: true, Provider: true}, AsStated},
		{"an object, broken off", Ending{Status: 200, Broken: true, Provider: true, Served: true}, AtMaximum},
		{"an object, left amid", Ending{Status: 200, Broken: true, Served: true}, AtMaximum},
		{"an object, left before its header", Ending{Status: 499, Left: true, Broken: true}, AtMaximum},
		{"an object that was not waited for", Ending{Status: 504, Left: true}, AtMaximum},
		{"a stream, left before its header", Ending{Status: 499, Left: true, Broken: true, Stream: true}, ByLength},
		{"a stream, left before its header, with a hosted tool", Ending{Status: 499, Left: true, Broken: true, Stream: true, Hosted: true}, AtMaximum},
		{"a stream, left amid", Ending{Status: 200, Broken: true, Stream: true, Served: true}, ByLength},
		{"a stream, left after an early usage", Ending{Status: 200, Broken: true, Stream: true, Served: true, Stated: stated, Cost: known}, ByLength},
		{"a stream, broken off amid", Ending{Status: 200, Broken: true, Provider: true, Stream: true, Served: true}, ByLength},
		{"a stream with a hosted tool, broken off", Ending{Status: 200, Broken: true, Stream: true, Served: true, Hosted: true}, AtMaximum},
		{"a stream that a budget ended", Ending{Status: 200, Broken: true, Stream: true, Served: true}, ByLength},
	} {
		if c.end.Length == nil {
			c.end.Length = func() Length { return Length{} }
		}
		if got := c.end.Rule(); got != c.want {
			t.Errorf("%s: rule %d, want %d", c.name, got, c.want)
		}
	}
}

// A stream that was broken off costs its stated input, else what was set aside for the input, and
// its output by the length: never more than was set aside, nor less than was stated.
func TestLengths(t *testing.T) {
	in, err := catalog.ParseRate("1000000") // a dollar for each token
	if err != nil {
		t.Fatal(err)
	}
	out, err := catalog.ParseRate("2000000")
	if err != nil {
		t.Fatal(err)
	}
	m := &catalog.Model{ID: "m", Prices: []catalog.Price{{Input: in, Output: out}}}
	call := &bound.Call{Model: m, Request: bound.JSON(plugins.Chat, new(plugins.Object))}
	upperBound := bound.Used{Cost: plugins.KnownCost(120e9), Usage: plugins.Usage{Input: plugins.Known(100), Output: plugins.Known(10)}}
	for _, c := range []struct {
		name   string
		stated plugins.Usage
		length Length
		want   plugins.Nanodollars
		output int64
	}{
		{"bytes", plugins.Usage{Input: plugins.Known(20)}, Length{Bytes: 17}, 30e9, 5},
		{"events", plugins.Usage{Input: plugins.Known(20)}, Length{Bytes: 4, Events: 7}, 34e9, 7},
		{"at most what was set aside", plugins.Usage{Input: plugins.Known(20)}, Length{Bytes: 4000}, 40e9, 10},
		{"at least what was stated", plugins.Usage{Input: plugins.Known(20), Output: plugins.Known(9)}, Length{Bytes: 4}, 38e9, 9},
		{"no input", plugins.Usage{}, Length{Bytes: 4}, 102e9, 1},
	} {
		end := Ending{Status: 200, Broken: true, Stream: true, Served: true, Stated: c.stated, Length: func() Length { return c.length }}
		if got := end.Settle(call, upperBound, ""); got.Cost.N != c.want || got.Usage.Output.N != c.output {
			t.Errorf("%s: %v and %d tokens, want %v and %d", c.name, got.Cost.N, got.Usage.Output.N, c.want, c.output)
		}
	}
}
