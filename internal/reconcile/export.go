package reconcile

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/big"
	"strings"
	"unique"

	"github.com/weirhq/weir/plugins"
)

// exportLines add up the lines of exports, which may be millions. The memory grows with days, models and
// descriptions, and by a hash for each line.
type exportLines struct {
	file   string             // the path of the export that is read, "" for a reader
	fileOf map[lineKey]string // the path of the export that has a line

	usage  map[group]int    // places in Bill.Usage
	costs  map[modelDay]int // places in Bill.Costs
	items  map[modelDay]int // places in Bill.Incomparable, by their descriptions
	volume volume
}

// NewFileBill is an empty bill of providers that have their own names of models.
func NewFileBill(providers ...string) *Bill {
	return &Bill{
		Providers: providers, States: [kinds]bool{Input: true, CacheRead: true, CacheWrite: true, CacheWrite1h: true, Output: true},
		OwnNames: true, WithoutTokens: make(map[string]bool),
		exports: &exportLines{
			fileOf: make(map[lineKey]string), usage: make(map[group]int), costs: make(map[modelDay]int), items: make(map[modelDay]int),
		},
	}
}

// lineKey is the hash of what says what a line is for.
type lineKey [sha256.Size]byte

// otherFile returns the file that had a line with the same values of some columns, "" if no other has.
// One file may have such lines twice, because exports can leave out columns.
func (x *exportLines) otherFile(line row, columns []string) string {
	hash := sha256.New()
	for _, column := range columns {
		fmt.Fprintf(hash, "%q", line(column))
	}
	key := lineKey(hash.Sum(nil))
	if other, ok := x.fileOf[key]; ok && other != x.file {
		return other
	}
	x.fileOf[key] = x.file
	return ""
}

// indexOf returns the place of a key in a list, and adds an element for a key that is new.
func indexOf[K comparable, V any](places map[K]int, key K, list *[]V, element V) int {
	i, ok := places[key]
	if !ok {
		i = len(*list)
		places[key], *list = i, append(*list, element)
	}
	return i
}

// addLine adds what was used of a model. kind has the words that say what it was. The error is
// [ErrOverflow].
func (b *Bill) addLine(day Day, name, kind string, amount Amount, quantity, unit string) error {
	kind = strings.ToLower(kind)
	tier := ""
	for _, t := range []string{plugins.BatchTier, "flex", "priority"} {
		if strings.Contains(kind, t) {
			tier = t
		}
	}
	tokens, ok := tokensIn(quantity, unit)
	x := b.exports
	x.volume.addAmounts(amount.Nanodollars, amount.Rounding)
	x.volume.addCounts(tokens)
	if err := x.volume.check(); err != nil {
		return err
	}
	name = unique.Make(name).Value() // which does not keep the line in memory
	cost := &b.Costs[indexOf(x.costs, modelDay{day, name}, &b.Costs, Cost{Day: day, Model: name})]
	cost.Amount.Nanodollars += amount.Nanodollars
	cost.Amount.Rounding += amount.Rounding
	if !ok {
		b.WithoutTokens[name] = true
		return nil
	}
	u := &b.Usage[indexOf(x.usage, group{day, series{model: name, tier: tier}}, &b.Usage, Usage{Day: day, Model: name, Tier: tier})]
	switch {
	case strings.Contains(kind, "write") && (strings.Contains(kind, "1h") || strings.Contains(kind, "hour")):
		u.Tokens[CacheWrite1h] += tokens
	case strings.Contains(kind, "write"):
		u.Tokens[CacheWrite] += tokens
	case strings.Contains(kind, "cach"):
		u.Tokens[CacheRead] += tokens
	case strings.Contains(kind, "output"):
		u.Tokens[Output] += tokens
	default:
		u.Tokens[Input] += tokens
	}
	return nil
}

// tokensIn is a quantity in tokens. ok is false if the unit is not known.
func tokensIn(quantity, unit string) (tokens int64, ok bool) {
	unit = strings.ToLower(unit)
	factor := int64(0)
	switch {
	case strings.Contains(unit, "1k token"), strings.Contains(unit, "1k input"), strings.Contains(unit, "1k output"), strings.Contains(unit, "thousand"):
		factor = 1000
	case strings.Contains(unit, "1m token"), strings.Contains(unit, "million"):
		factor = 1_000_000
	case unit == "tokens":
		factor = 1
	}
	n, ok := parseDecimal(quantity)
	if !ok || factor == 0 {
		return 0, false
	}
	n.Mul(n, new(big.Rat).SetInt64(factor))
	integer, ok := new(big.Int).SetString(n.FloatString(0), 10)
	if ok && !integer.IsInt64() {
		return math.MaxInt64, true // which is too large to compare
	}
	return integer.Int64(), ok
}

// leaveOut adds an amount to what cannot be compared. Amounts of a day with the same description
// are one. The error is [ErrOverflow].
func (b *Bill) leaveOut(day Day, description string, amount Amount) error {
	if amount.Nanodollars == 0 {
		return nil
	}
	x := b.exports
	x.volume.addAmounts(amount.Nanodollars)
	description = unique.Make(description).Value()
	item := &b.Incomparable[indexOf(x.items, modelDay{day, description}, &b.Incomparable, Item{Day: &day, Description: description, Amount: plugins.KnownCost(0)})]
	item.Amount.N += amount.Nanodollars
	return x.volume.check()
}
