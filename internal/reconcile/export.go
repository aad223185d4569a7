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

// exportLines add up the lines of exports as they are read, because there may be millions. They need
// memory for each day, model and description, and a hash for each line.
type exportLines struct {
	file   string             // path of the export that is being read, "" for a reader
	fileOf map[lineKey]string // path of the export that has a line

	// usage, costs and items are indexes into the lists of the Bill.
	usage  map[group]int    // into Usage
	costs  map[modelDay]int // into Costs
	items  map[modelDay]int // into Incomparable; the key has the description in place of a model
	volume volume
}

// NewFileBill returns an empty bill for exports in files. Their providers name models in their own way.
func NewFileBill(providers ...string) *Bill {
	return &Bill{
		Providers: providers, States: [kinds]bool{Input: true, CacheRead: true, CacheWrite: true, CacheWrite1h: true, Output: true},
		OwnNames: true, WithoutTokens: make(map[string]bool),
		exports: &exportLines{
			fileOf: make(map[lineKey]string), usage: make(map[group]int), costs: make(map[modelDay]int), items: make(map[modelDay]int),
		},
	}
}

// lineKey is a hash of the columns that identify a line.
type lineKey [sha256.Size]byte

// otherFile returns another file that has the same line, or "" if there is none. Lines are the same if
// they agree in columns. Such lines may repeat within one file, because exports can leave columns out.
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

// indexOrAppend returns the index of a key's element in list. It appends element for a new key.
func indexOrAppend[K comparable, V any](indexes map[K]int, key K, list *[]V, element V) int {
	i, ok := indexes[key]
	if !ok {
		i = len(*list)
		indexes[key], *list = i, append(*list, element)
	}
	return i
}

// addLine adds the usage and the cost of a model. description is free text, such as "input tokens,
// batch": it names the kind of token and the service tier. The error is [ErrOverflow].
func (b *Bill) addLine(day Day, name, description string, amount Amount, quantity, unit string) error {
	kind, tier := parseDescription(strings.ToLower(description))
	tokens, ok := tokensIn(quantity, unit)
	x := b.exports
	x.volume.addAmounts(amount.Nanodollars, amount.Rounding)
	x.volume.addCounts(tokens)
	if err := x.volume.check(); err != nil {
		return err
	}
	name = unique.Make(name).Value() // name itself would keep the whole line in memory
	cost := &b.Costs[indexOrAppend(x.costs, modelDay{day, name}, &b.Costs, Cost{Day: day, Model: name})]
	cost.Amount.Nanodollars += amount.Nanodollars
	cost.Amount.Rounding += amount.Rounding
	if !ok {
		b.WithoutTokens[name] = true
		return nil
	}
	u := &b.Usage[indexOrAppend(x.usage, group{day, series{model: name, tier: tier}}, &b.Usage, Usage{Day: day, Model: name, Tier: tier})]
	u.Tokens[kind] += tokens
	return nil
}

// parseDescription finds the kind of token and the service tier in a description in lower case.
func parseDescription(description string) (kind Kind, tier string) {
	has := func(word string) bool { return strings.Contains(description, word) }
	for _, t := range []string{plugins.BatchTier, "flex", "priority"} {
		if has(t) {
			tier = t
		}
	}
	switch {
	case has("write") && (has("1h") || has("hour")):
		return CacheWrite1h, tier
	case has("write"):
		return CacheWrite, tier
	case has("cach"):
		return CacheRead, tier
	case has("output"):
		return Output, tier
	}
	return Input, tier
}

// tokensIn converts a quantity to tokens. ok is false if the unit is unknown.
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
		return math.MaxInt64, true // volume.check rejects it
	}
	return integer.Int64(), ok
}

// addIncomparable adds an amount that no record can be compared with. It makes one item for each day and
// description. The error is [ErrOverflow].
func (b *Bill) addIncomparable(day Day, description string, amount Amount) error {
	if amount.Nanodollars == 0 {
		return nil
	}
	x := b.exports
	x.volume.addAmounts(amount.Nanodollars)
	description = unique.Make(description).Value()
	item := &b.Incomparable[indexOrAppend(x.items, modelDay{day, description}, &b.Incomparable, Item{Day: &day, Description: description, Amount: plugins.KnownCost(0)})]
	item.Amount.N += amount.Nanodollars
	return x.volume.check()
}
