package money

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/credits"
)

// chargeOnce charges an amount to accounts, unless the first of them has been charged before. It
// reports whether it has charged them.
func chargeOnce(ctx context.Context, ledger credits.Ledger, amount plugins.Nanodollars, holds ...credits.Hold) (charged bool, err error) {
	holds[0].Limit = amount
	if err = chargeNow(ctx, ledger, amount, holds...); errors.Is(err, credits.ErrInsufficient) {
		return false, nil
	}
	return err == nil, err
}

// chargeNow charges an amount to accounts.
func chargeNow(ctx context.Context, ledger credits.Ledger, amount plugins.Nanodollars, holds ...credits.Hold) error {
	r := credits.Reservation{ID: uuid.New(), Org: holds[0].Org, Amount: amount, Holds: holds}
	if err := ledger.Reserve(ctx, r); err != nil {
		return err
	}
	return errors.Join(ledger.Charge(ctx, r, amount), ledger.Release(ctx, r))
}
