// Package credits is the contract of ledgers: what organisations were granted, what
// budgets count, what calls have reserved, and what those cost. Package embedded keeps a
// ledger for one process; package creditstest tests ledgers.
package credits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

var (
	// ErrInsufficient means that an account does not cover the reservation. The error is an
	// *InsufficientError, which names the account.
	ErrInsufficient = errors.New("insufficient credits")

	// ErrUnavailable means that the ledger cannot be read or written now. Nothing
	// can be spent until the ledger can be used again.
	ErrUnavailable = errors.New("the credits are unavailable")

	// ErrNoAccount means that a reservation names no account to take from.
	ErrNoAccount = errors.New("the reservation names no account")

	// ErrFull means that a budget without an end has an account for each of MaxValues values,
	// and no other value can be counted. The error is an *FullError, which names the budget.
	ErrFull = errors.New("the budget counts no more values")

	// ErrNoReservation means that there is nothing to charge: the reservation was
	// never made, or was released.
	ErrNoReservation = errors.New("no such reservation")
)

// MaxValues is how many values a budget without an end counts at most, about 60 MB. A ledger
// never forgets the account of such a budget, because the account's value could then spend the
// limit again.
const MaxValues = 250_000

// FullError says for which account the budget has no room.
type FullError struct{ Account }

// Error implements error.
func (e *FullError) Error() string { return e.Org + ": " + e.Budget + ": " + ErrFull.Error() }

// Is reports that the error is an ErrFull.
func (*FullError) Is(other error) bool { return other == ErrFull }

// Endless reports whether the account belongs to a budget without an end.
func (a Account) Endless() bool { return a.Budget != "" && a.Ends == 0 }

// Ledger keeps the credits of organisations and what budgets count. Several nodes may share one: each
// method takes effect at once and as a whole, or fails and has no effect, where
// its comment says nothing else. A ledger bounds how long it takes by itself, and
// is safe for use by several goroutines.
type Ledger interface {
	// Grant adds amount, which may be negative, to what org may spend. It is on
	// disk when Grant returns. After ErrUnavailable, Balance tells whether it took
	// effect.
	Grant(ctx context.Context, org string, amount plugins.Nanodollars) error

	// Seed is Grant for an organisation that has never had a grant, and else does
	// nothing.
	Seed(ctx context.Context, org string, amount plugins.Nanodollars) error

	// Reserve sets r.Amount aside in all of r.Holds, or in no account. Making the same
	// reservation again changes nothing. A reservation lasts until Release, or until its node
	// has died: then r.Lost is spent. A ledger that nodes share notices the death by a lease
	// that the node renews for all its reservations. A reservation with r.Until lasts until
	// End, or until r.Until: then r.Lost is spent. Nothing stays set aside after an error:
	// ErrInsufficient, ErrFull, ErrUnavailable, or that r.ID is in use for something else.
	Reserve(ctx context.Context, r Reservation) error

	// Settle ends the reservations without Until that earlier processes of this node have
	// left. total returns what a call has cost in each account: at least r.Lost, unless the
	// cost is known better. charged is what was charged so far. r has only ID, Org, Lost, Call
	// and the accounts. A reservation without Lost has cost what was charged. settled is false
	// if reservations are left, because of an error or because they may still have a lease:
	// then Settle must be called again. It is called by one goroutine.
	Settle(ctx context.Context, total func(r Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error)) (settled bool, err error)

	// Charge makes total what the call has cost so far, in all accounts. The charge replaces
	// the charge before, so that it can be repeated. It can be more than r.Amount: then the
	// balance may become negative. What is charged is no longer reserved. The error
	// is ErrNoReservation, or ErrUnavailable: then the ledger keeps the charge, lets
	// nobody reserve, and writes the charge as soon as it can.
	Charge(ctx context.Context, r Reservation, total plugins.Nanodollars) error

	// Release frees what is reserved and not charged, and ends the reservation. It
	// does nothing if the reservation has ended.
	Release(ctx context.Context, r Reservation) error

	// End ends a reservation that has Until, whichever node made it, and returns its accounts.
	// total is spent, and the rest of the reservation is free. The error is ErrNoReservation if
	// the reservation has ended, or ErrUnavailable. Charge and Release know no reservation that
	// has Until.
	End(ctx context.Context, id uuid.UUID, total plugins.Nanodollars) ([]Account, error)

	// Balance returns the state of what a hold counts, zero if the account never had
	// anything.
	Balance(ctx context.Context, of Hold) (Balance, error)

	// Counted returns what a budget counts in the window of a hold, by value. The answer has
	// every value, whichever value the hold has.
	Counted(ctx context.Context, of Hold) ([]Balance, error)

	// Balances returns the credits of all organisations that ever had credits, by name.
	Balances(ctx context.Context) ([]Balance, error)

	// Close ends the node's use of the ledger: every other method then returns
	// ErrUnavailable, and what the node has reserved ends as if the node had died.
	Close(ctx context.Context) error
}

// Charge is what a call was charged by a reservation, as its record in the journal keeps it.
type Charge struct {
	Org      string              `json:"org"`
	Accounts []Account           `json:"accounts"`
	Total    plugins.Nanodollars `json:"total"`
	// Generation is that of the ledger's balances at the time of the charge: the balances of all
	// later generations have the charge.
	Generation uint64 `json:"generation"`
}

// AppendJSON appends what json.Marshal would, in a tenth of the time.
func (c Charge) AppendJSON(b []byte) []byte {
	b = plugins.AppendString(append(b, `{"org":`...), c.Org)
	b = append(plugins.AppendKey(b, "accounts"), '[')
	for i, a := range c.Accounts {
		if i > 0 {
			b = append(b, ',')
		}
		b = a.AppendJSON(b)
	}
	b = strconv.AppendInt(plugins.AppendKey(append(b, ']'), "total"), int64(c.Total), 10)
	return append(strconv.AppendUint(plugins.AppendKey(b, "generation"), c.Generation, 10), '}')
}

// Recoverer is a Ledger in a file, from which a power cut may take charges whose records are
// left.
type Recoverer interface {
	Ledger
	// Charged returns what the record of a call keeps of a reservation. ok is false if nothing was
	// charged, or the reservation has ended: then the record keeps what it has.
	Charged(id uuid.UUID) (c Charge, ok bool)
	// Recover charges again what the records of calls say and the ledger has lost. It never
	// charges less. It comes before Settle, and before the first Reserve.
	Recover(context.Context) error
}

// QuantityMark ends the name of a budget in an Account. Names have no line breaks.
const QuantityMark = "\n"

// Account is what calls are charged to: the credits of an organisation, or what a budget
// counts of a value in a window. Each window has an account of its own, and no call takes from
// the account of a window that is over, so that nothing needs a reset.
type Account struct {
	// Org is the organisation whose calls are charged.
	Org string `json:"org"`
	// Budget is the name of the budget, "" for the credits. If the budget counts no dollars,
	// QuantityMark and the quantity follow the name.
	Budget string `json:"budget,omitempty"`
	// Value is whose calls the budget counts; "" if the budget counts all together, and for
	// calls without a value.
	Value string `json:"value,omitempty"`
	// Begins and Ends bound the window of the budget. Both are 0 for the credits and for a
	// budget without an end. A ledger may forget the account a day after the window's end, or
	// the window's length after its end, whichever is earlier.
	Begins storage.Timestamp `json:"begins,omitempty"`
	Ends   storage.Timestamp `json:"ends,omitempty"`
}

// AppendJSON appends what json.Marshal would, in a tenth of the time.
func (a Account) AppendJSON(b []byte) []byte {
	b = plugins.AppendString(append(b, `{"org":`...), a.Org)
	for _, member := range [...]struct{ name, text string }{{"budget", a.Budget}, {"value", a.Value}} {
		if member.text != "" {
			b = plugins.AppendString(plugins.AppendKey(b, member.name), member.text)
		}
	}
	for _, member := range [...]struct {
		name string
		at   storage.Timestamp
	}{{"begins", a.Begins}, {"ends", a.Ends}} {
		if member.at != 0 {
			b = append(member.at.Append(append(plugins.AppendKey(b, member.name), '"')), '"')
		}
	}
	return append(b, '}')
}

// Forgotten returns when a ledger may forget the account.
func (a Account) Forgotten() storage.Timestamp { return a.Ends + min(day, a.Ends-a.Begins) }

const day = storage.Timestamp(24 * time.Hour / time.Millisecond)

// Hold is an account from which a reservation takes. If a budget counts tokens or calls, its
// amounts are numbers of tokens or calls.
type Hold struct {
	Account
	// Limit is what the calls of a budget's account may cost together. The limit of credits
	// is what was granted.
	Limit plugins.Nanodollars
	// Rolling is the length of a rolling window, 0 for any other window. The account of a
	// rolling window is a step of the window, and the steps before count too.
	Rolling Rolling
}

// Rolling is the length of a rolling window in milliseconds. The window moves in 60 steps of
// whole milliseconds, and holds 61 steps, so that no period of the window's length counts more
// than the limit.
type Rolling storage.Timestamp

const steps = 60

func (r Rolling) step() storage.Timestamp { return (storage.Timestamp(r) + steps - 1) / steps }

// Around returns when the step of a time begins, and when the last call of the step has left
// the window.
func (r Rolling) Around(at storage.Timestamp) (begins, ends storage.Timestamp) {
	begins = at - at%r.step()
	return begins, begins + (steps+1)*r.step()
}

// Steps yields the accounts that a hold counts, the newest first.
func (h Hold) Steps(yield func(Account) bool) {
	of, step := h.Account, h.Rolling.step()
	for i := 0; yield(of) && h.Rolling > 0 && i < steps; i++ {
		of.Begins -= step
		of.Ends -= step
	}
}

// ByValue adds up accounts of the steps of a hold by their values.
func (h Hold) ByValue(accounts []Balance) []Balance {
	sums := make(map[string]Balance)
	for _, a := range accounts {
		sum := sums[a.Value]
		sum.Account = h.Account
		sum.Value = a.Value
		sum.Spent, sum.Reserved = sum.Spent+a.Spent, sum.Reserved+a.Reserved
		sums[a.Value] = sum
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b Balance) int { return cmp.Compare(a.Value, b.Value) })
}

// Standing returns the state of what a hold counts, with its limit. If an amount does not
// fit, freeAt is when enough has left a rolling window, 0 for any other window. each returns
// the state of an account, and is called in the order of Steps.
func (h Hold) Standing(amount plugins.Nanodollars, each func(Account) Balance) (sum Balance, freeAt storage.Timestamp) {
	sum.Account = h.Account
	for of := range h.Steps {
		b := each(of)
		sum.Granted, sum.Spent, sum.Reserved = sum.Granted+b.Granted, sum.Spent+b.Spent, sum.Reserved+b.Reserved
		if h.Budget != "" {
			sum.Granted = h.Limit
		}
		if freeAt == 0 && h.Rolling > 0 && sum.Available() < amount {
			freeAt = of.Ends
		}
	}
	return sum, freeAt
}

// Accounts are the accounts of the holds.
func (r *Reservation) Accounts() (list []Account) {
	for _, h := range r.Holds {
		list = append(list, h.Account)
	}
	return list
}

// Reservation is what one call may spend.
type Reservation struct {
	// ID identifies the reservation among the reservations of all nodes, and is used once.
	ID uuid.UUID
	// Org pays for the call.
	Org string
	// Amount is set aside, 0 or more.
	Amount plugins.Nanodollars
	// Holds are the accounts: at least one, and no account twice.
	Holds []Hold
	// Lost is what the call has cost in each account if its node dies before Release, and
	// no more was charged: the most that the provider may have done. When the node is back,
	// Settle replaces Lost by what the call's record says. Lost is 0 for a reservation that
	// ends with the node.
	Lost plugins.Nanodollars
	// Until is the time until which a reservation lasts that does not end with its node,
	// because the provider works on for hours; 0 for any other reservation. Lost is above 0 if
	// Until is set.
	Until storage.Timestamp
	// Call says whose reservation it is.
	Call Call
}

// Call is the part of a record by which a call is recorded after its node has died.
type Call struct {
	// ID is the id of the record.
	ID uuid.UUID `json:"id"`
	// CreatedAt is when the call began.
	CreatedAt storage.Timestamp `json:"created_at"`
	// Spent is what the call had cost before the reservation was made.
	Spent plugins.Nanodollars `json:"spent,omitempty"`

	AuthHash  string `json:"auth_hash,omitempty"`
	KeyID     string `json:"key_id,omitempty"`
	Project   string `json:"project,omitempty"`
	UserID    string `json:"user_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
}

// Equal reports whether two reservations are the same.
func (r Reservation) Equal(other Reservation) bool {
	return r.ID == other.ID && r.Org == other.Org && r.Amount == other.Amount && slices.Equal(r.Holds, other.Holds)
}

// InsufficientError says which account does not cover a reservation.
type InsufficientError struct {
	Balance
	// FreeAt is when enough has left a rolling window, 0 for any other window.
	FreeAt storage.Timestamp
}

// Error implements error.
func (e *InsufficientError) Error() string {
	return fmt.Sprintf("%s of %s: %s is left", cmp.Or(e.Budget, "the credits"), e.Org, e.Available())
}

// Is reports that the error is an ErrInsufficient.
func (*InsufficientError) Is(other error) bool { return other == ErrInsufficient }

// Balance is the state of an account.
type Balance struct {
	Account
	// Granted is the sum of all grants; for a budget, the limit where a reservation names the
	// limit. Spent is the sum of all charges.
	Granted, Spent plugins.Nanodollars
	// Reserved is what calls in flight may still spend.
	Reserved plugins.Nanodollars
}

// Available returns what can be reserved. It is negative where calls have cost
// more than they reserved.
func (b Balance) Available() plugins.Nanodollars { return b.Granted - b.Spent - b.Reserved }

// Statement is how APIs write a Balance, in US dollars.
type Statement struct {
	// Balance is what was granted and is not spent. Reserved is a part of it.
	Balance  plugins.Cost `json:"balance"`
	Granted  plugins.Cost `json:"granted"`
	Spent    plugins.Cost `json:"spent"`
	Reserved plugins.Cost `json:"reserved"`
}

// Statement returns b as APIs write it.
func (b Balance) Statement() Statement {
	return Statement{
		Balance: plugins.KnownCost(b.Granted - b.Spent), Granted: plugins.KnownCost(b.Granted),
		Spent: plugins.KnownCost(b.Spent), Reserved: plugins.KnownCost(b.Reserved),
	}
}
