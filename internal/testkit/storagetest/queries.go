package storagetest

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"github.com/weirhq/weir/storage"
)

// Query makes a random query about the records.
func Query(r *rand.Rand, records []*storage.Record) *storage.RequestQuery {
	return &storage.RequestQuery{
		Org:        pick(r, append(orgs, orgs[0], orgs[0], "nobody")),
		Filter:     Filter(r, records),
		Cached:     maybe(r),
		Scored:     maybe(r),
		Experiment: maybe(r),
		Sort:       sorts(r),
		Random:     chance(r, 20),
		Offset:     pick(r, []int{0, 0, 0, 1, 10, 500}),
		Limit:      pick(r, []int{0, 1, 7, 50, 1000, 1000}),
	}
}

func maybe(r *rand.Rand) *bool {
	if !chance(r, 8) {
		return nil
	}
	return new(chance(r, 2))
}

func sorts(r *rand.Rand) []storage.Sort {
	var sorts []storage.Sort
	for range r.IntN(4) {
		s := storage.Sort{Key: pick(r, storage.SortKeys()), Desc: chance(r, 2)}
		switch s.Key {
		case storage.SortProperties:
			s.Name = pick(r, propertyNames)
		case storage.SortScores:
			s.Name = pick(r, scoreNames)
		case storage.SortValues:
			s.Name = pick(r, inputNames)
		}
		sorts = append(sorts, s)
	}
	return sorts
}

// Filter makes a random tree over all fields and operators. Half of its values
// come from the records, so that leaves are true now and then.
func Filter(r *rand.Rand, records []*storage.Record) storage.Filter {
	switch {
	case chance(r, 20):
		return storage.All{}
	case chance(r, 2):
		return leaf(r, records)
	}
	return &storage.Branch{Or: chance(r, 2), Left: Filter(r, records), Right: Filter(r, records)}
}

func leaf(r *rand.Rand, records []*storage.Record) *storage.Leaf {
	return leafOf(r, records, pick(r, storage.Fields()))
}

func leafOf(r *rand.Rand, records []*storage.Record, f *storage.Field) *storage.Leaf {
	return LeafOf(r, records, f, pick(r, f.Kind.Operators()))
}

// LeafOf makes a leaf of a field and an operator with a random value. Half of the values come
// from the records.
func LeafOf(r *rand.Rand, records []*storage.Record, f *storage.Field, op storage.Operator) *storage.Leaf {
	l := &storage.Leaf{Field: f, Op: op}
	if l.Field.Map {
		l.Key = pick(r, keysOf(l.Field))
	}
	var from *storage.Record
	if len(records) > 0 && chance(r, 2) {
		from = pick(r, records)
	}
	switch l.Field.Kind {
	case storage.Number:
		l.Number = numberValue(r, l, from)
	case storage.Time:
		l.Time = timeValue(r, l, from)
	case storage.Boolean:
		l.Bool = chance(r, 2)
	case storage.PropertyKey:
		l.Text = pick(r, propertyNames)
	default:
		l.Text = textValue(r, l, from)
	}
	return l
}

func keysOf(f *storage.Field) []string {
	switch {
	case f.Kind == storage.Number:
		return append(scoreNames, storage.FeedbackScore)
	case f.Content != 0:
		return inputNames
	}
	return propertyNames
}

func numberValue(r *rand.Rand, l *storage.Leaf, from *storage.Record) storage.Decimal {
	if from != nil {
		n, unit := l.Field.Number(from, l.Key).Any(), ""
		if l.Field.Money {
			unit = "e-9"
		}
		if n != nil {
			return beside(r, fmt.Sprint(n, unit))
		}
	}
	return decimal(pick(r, []string{
		"0", "1", "0.5", "-1", "7", "200", "1.5", "0.1", "0.3", "1e18", "1e300", "-1e300", "0.30000000000000004",
		"9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "9223372036.854775807",
	}))
}

// beside is a number, or one that differs from it a little.
func beside(r *rand.Rand, number string) storage.Decimal {
	n, ok := new(big.Rat).SetString(number)
	if !ok {
		return decimal("0") // of null
	}
	delta, _ := new(big.Rat).SetString(pick(r, []string{"0", "0", "0", "1", "-1", "1e-9", "1e-12"}))
	return decimal(n.Add(n, delta).FloatString(20))
}

func decimal(text string) storage.Decimal {
	d, err := storage.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}

func timeValue(r *rand.Rand, l *storage.Leaf, from *storage.Record) storage.Timestamp {
	if from != nil {
		if t := l.Field.Time(from); t != 0 {
			return t + storage.Timestamp(r.IntN(3)-1)
		}
	}
	return pick(r, []storage.Timestamp{0, -1, 1 << 45, instant(r), instant(r)})
}

func textValue(r *rand.Rand, l *storage.Leaf, from *storage.Record) string {
	s := pick(r, words)
	if from != nil && l.Field.Content == 0 {
		s = ""
		if texts := slices.Collect(l.Field.Texts(from, nil, l.Key)); len(texts) > 0 {
			s = pick(r, texts)
		}
	}
	if l.Op != storage.Equals && l.Op != storage.NotEquals && chance(r, 2) {
		s = part(r, s)
	}
	if chance(r, 3) {
		s = otherCase(r, s)
	}
	if l.Op == storage.Like || l.Op == storage.ILike {
		s = pattern(r, s)
	}
	return s
}

// part is a piece of s, of at most fifty letters.
func part(r *rand.Rand, s string) string {
	letters := []rune(s)
	if len(letters) == 0 {
		return s
	}
	start := r.IntN(len(letters))
	return string(letters[start:min(len(letters), start+1+r.IntN(50))])
}

func otherCase(r *rand.Rand, s string) string {
	switch r.IntN(3) {
	case 0:
		return strings.ToUpper(s)
	case 1:
		return strings.ToLower(s)
	}
	return strings.Map(unicode.SimpleFold, s)
}

// pattern turns some letters into wildcards and escapes some others. Half of the time it
// escapes all wildcards that s had itself.
func pattern(r *rand.Rand, s string) string {
	escape := chance(r, 2)
	var b strings.Builder
	for _, c := range s {
		switch {
		case b.Len() > 200:
			b.WriteByte('%')
			return b.String()
		case chance(r, 8):
			b.WriteByte('_')
			continue
		case chance(r, 8):
			b.WriteByte('%')
			continue
		case escape && strings.ContainsRune(`%_\`, c), chance(r, 20):
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return pick(r, []string{"", "", "%"}) + b.String() + pick(r, []string{"", "", "%", "%", `\`})
}
