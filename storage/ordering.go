package storage

import (
	"cmp"
	"maps"
	"slices"
)

// OrderBy is one sort key of a query about users or sessions. What lacks the
// value comes last in both directions; text sorts by bytes.
type OrderBy[K ~string] struct {
	Key  K
	Desc bool
}

// sortBy puts users or sessions into the order of the keys, or of standard when
// there are none. Ties break by tie in the direction of the first key.
func sortBy[K ~string, T any](all []*T, keys []OrderBy[K], standard K, values map[K]func(*T) attribute, tie func(a, b *T) int, p *CancelCheck) {
	if len(keys) == 0 {
		keys = []OrderBy[K]{{Key: standard, Desc: true}}
	}
	slices.SortFunc(all, CancellableOrder(p, func(a, b *T) int {
		for _, k := range keys {
			value := values[k.Key]
			if d := value(a).compare(value(b), k.Desc); d != 0 {
				return d
			}
		}
		return directed(tie(a, b), keys[0].Desc)
	}))
}

// parseOrder reads a field sort: an object of keys with their directions, in the
// order in which they apply. Absent raw is no key. Errors are *FilterError.
func parseOrder[K ~string, V any](raw []byte, known map[K]V) (keys []OrderBy[K], err error) {
	p := newParser("sort", raw)
	if p.absent() {
		return nil, nil
	}
	err = p.object(func(name string) error {
		k := K(name)
		if _, ok := known[k]; !ok {
			return p.fail("%s", Unknown("key", name, slices.Sorted(maps.Keys(known))))
		}
		return p.into(name, func() error {
			desc, err := p.direction()
			keys = append(keys, OrderBy[K]{k, desc})
			return err
		})
	})
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// direction reads asc or desc.
func (p *parser) direction() (desc bool, err error) {
	t, err := p.token()
	if err != nil {
		return false, err
	}
	if t != "asc" && t != "desc" {
		return false, p.fail("expected \"asc\" or \"desc\", got %s", describe(t))
	}
	return t == "desc", nil
}

// ParseUserSort reads the sort of a UserQuery.
func ParseUserSort(raw []byte) ([]UserSort, error) {
	return parseOrder(raw, userAttributes)
}

// ParseSessionSort reads the sort of a SessionQuery.
func ParseSessionSort(raw []byte) ([]SessionSort, error) {
	return parseOrder(raw, sessionAttributes)
}

func byUserID(a, b *User) int { return cmp.Compare(a.ID, b.ID) }

func bySessionName(a, b *Session) int {
	return cmp.Or(cmp.Compare(a.SessionID, b.SessionID), cmp.Compare(a.SessionName, b.SessionName))
}
