package embedded

import (
	"cmp"
	"slices"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// balances has the balance of each account: by the account without its value, then by the value.
// An account that is missing has nothing.
type balances map[credits.Account]map[string]*credits.Balance

// lookup returns the balance of an account, or nil if the account has nothing.
func (b balances) lookup(of credits.Account) *credits.Balance { return b.values(of)[of.Value] }

// values returns the balances of all values of the account's budget and window, by value.
func (b balances) values(of credits.Account) map[string]*credits.Balance {
	return b[withoutValue(of)]
}

// balance returns a copy of the balance of an account.
func (b balances) balance(of credits.Account) credits.Balance {
	if a := b.lookup(of); a != nil {
		return *a
	}
	return credits.Balance{Account: of}
}

// open returns the balance of an account, which begins with nothing.
func (b balances) open(of credits.Account) *credits.Balance {
	a := b.lookup(of)
	if a == nil {
		a = &credits.Balance{Account: of}
		all := withoutValue(of)
		if b[all] == nil {
			b[all] = make(map[string]*credits.Balance)
		}
		b[all][of.Value] = a
	}
	return a
}

// remove forgets an account.
func (b balances) remove(of credits.Account) {
	all := withoutValue(of)
	if delete(b[all], of.Value); len(b[all]) == 0 {
		delete(b, all)
	}
}

// apply adds what an entry grants and charges.
func (b balances) apply(e entry) {
	for _, of := range e.accounts() {
		a := b.open(of)
		a.Granted += e.Grant
		a.Spent += e.Charge
	}
}

// reserve adds to what is reserved in the accounts of a reservation. A budget forgets a value of
// which nothing is spent or reserved.
func (b balances) reserve(r *reservation, more plugins.Nanodollars) {
	for _, h := range r.Holds {
		a := b.open(h.Account)
		a.Reserved += more
		if h.Budget != "" && *a == (credits.Balance{Account: h.Account}) {
			b.remove(h.Account)
		}
	}
}

// list returns the balances of the wanted accounts, in order. wanted gets accounts without their
// value.
func (b balances) list(wanted func(all credits.Account) bool) []credits.Balance {
	list := []credits.Balance{}
	for all, values := range b {
		if !wanted(all) {
			continue
		}
		for _, a := range values {
			list = append(list, *a)
		}
	}
	slices.SortFunc(list, func(a, b credits.Balance) int {
		return cmp.Or(cmp.Compare(a.Org, b.Org), cmp.Compare(a.Budget, b.Budget), cmp.Compare(a.Begins, b.Begins), cmp.Compare(a.Value, b.Value))
	})
	return list
}

// expire removes the accounts of windows that ended long before now.
func (b balances) expire(now storage.Timestamp) {
	for all, values := range b {
		if all.Ends == 0 || all.Forgotten() >= now {
			continue
		}
		for _, a := range values {
			if a.Reserved == 0 {
				b.remove(a.Account)
			}
		}
	}
}

func withoutValue(of credits.Account) credits.Account {
	of.Value = ""
	return of
}
