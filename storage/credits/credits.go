// Package credits is the contract of ledgers: what organisations were granted,
// what their calls have reserved, and what those cost. Package embedded keeps a
// ledger for one process; package creditstest tests ledgers.
package credits

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
)

var (
	// ErrInsufficient means that the balance does not cover the reservation.
	ErrInsufficient = errors.New("insufficient credits")

	// ErrUnavailable means that the ledger cannot be read or written now. Nothing
	// can be spent until it can.
	ErrUnavailable = errors.New("the credits are unavailable")

	// ErrNoReservation means that there is nothing to charge: the reservation was
	// never made, or was released.
	ErrNoReservation = errors.New("no such reservation")
)

// Ledger keeps the credits of organisations. Several nodes may share one: each
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

	// Reserve sets r.Amount aside. The same reservation can be made again, which
	// changes nothing. It lasts until Release, or until its node has died: a ledger
	// that nodes share finds that out by a lease that the node renews for all its
	// reservations. Nothing stays set aside after an error: ErrInsufficient,
	// ErrUnavailable, or that r.ID is in use for something else.
	Reserve(ctx context.Context, r Reservation) error

	// Charge makes total what the call has cost so far. It replaces the charge
	// before, so that it can be repeated, and can be more than r.Amount: then the
	// balance may become negative. What is charged is no longer reserved. The error
	// is ErrNoReservation, or ErrUnavailable: then the ledger keeps the charge, lets
	// nobody reserve, and writes it as soon as it can.
	Charge(ctx context.Context, r Reservation, total plugins.Nanodollars) error

	// Release frees what is reserved and not charged, and ends the reservation. It
	// does nothing if that is done.
	Release(ctx context.Context, r Reservation) error

	// Balance returns the credits of one organisation, zero if it never had any.
	Balance(ctx context.Context, org string) (Balance, error)

	// Balances returns the credits of all organisations that ever had any, by name.
	Balances(ctx context.Context) ([]Balance, error)

	// Close ends the node's use of the ledger: every other method then returns
	// ErrUnavailable, and what the node has reserved is free.
	Close(ctx context.Context) error
}

// Reservation is what one call may spend.
type Reservation struct {
	// ID identifies it among the reservations of all nodes, and is used once.
	ID uuid.UUID
	// Org pays for the call.
	Org string
	// Amount is set aside, 0 or more.
	Amount plugins.Nanodollars
}

// Balance is the state of the credits of one organisation.
type Balance struct {
	Org string
	// Granted is the sum of all grants, Spent that of all charges.
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
