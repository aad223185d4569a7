package demand

import "github.com/weirhq/weir/plugins"

// Used is what a call uses: so far, or at most.
type Used struct {
	Cost  plugins.Cost
	Usage plugins.Usage
}

// Free is what a call uses that costs nothing.
func Free() Used {
	return Used{Cost: plugins.KnownCost(0), Usage: plugins.Usage{Input: plugins.Known(0), Output: plugins.Known(0)}}
}
