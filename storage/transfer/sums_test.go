package transfer

import (
	"math"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Records may claim any count of tokens: sums stay at the largest number, and do not become
// negative.
func TestLargeSums(t *testing.T) {
	r := storage.Record{Cost: plugins.KnownCost(math.MaxInt64 - 1)}
	r.Usage.Input, r.Usage.Output = plugins.Known(math.MaxInt64-1), plugins.Known(math.MaxInt64-1)
	var one, all Sums
	one.add(&r)
	all.merge(one)
	all.merge(one)
	all.add(&r)
	if all.Records != 3 || all.Cost != math.MaxInt64 || one.Tokens != math.MaxInt64 || all.Tokens != math.MaxInt64 {
		t.Errorf("one %+v, all %+v", one, all)
	}
}
