package alert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

const (
	// shortestSlot is the shortest time in which an alert fires once for a subject.
	shortestSlot = time.Hour
	// retention is the time for which resolved alerts are kept, in milliseconds.
	retention = storage.Timestamp(90 * 24 * time.Hour / time.Millisecond)
	// prunePage is how many alerts are read at once to delete those of long ago.
	prunePage = 100
)

// slot is the part of time in which an alert fires once for a subject.
func slot(r *Rule, at storage.Timestamp) storage.Timestamp {
	length := storage.Timestamp(max(time.Duration(r.Over), shortestSlot).Milliseconds())
	return at - at%length
}

// alertID is the id of an alert, the same at each node.
func alertID(rule, subject string, slot storage.Timestamp) string {
	return "alert_" + digest(rule, subject, strconv.FormatInt(int64(slot), 10))
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// fire keeps an alert with its messages, unless another node was first.
func (e *Engine) fire(ctx context.Context, org *control.Organisation, f *control.Firing, channels []string) error {
	for _, name := range channels {
		f.Deliveries = append(f.Deliveries, delivery(f, name, control.StateFiring))
	}
	first, err := org.Fire(ctx, f)
	if !first || err != nil {
		return err
	}
	e.Logger.Warn("an alert fires", zap.String("org", e.Org), zap.String("alert", f.Rule), zap.String("id", f.ID),
		zap.String("condition", f.Condition), zap.Float64("value", f.Value))
	e.wakeDelivery()
	return nil
}

// delivery is a message that shall be sent now.
func delivery(f *control.Firing, channel, state string) control.Delivery {
	now := storage.Millis(time.Now())
	return control.Delivery{ID: "msg_" + digest(f.ID, channel, state), Channel: channel, State: state, CreatedAt: now, NextAt: &now}
}

// errUnchanged ends an update that has nothing to change.
var errUnchanged = errors.New("nothing to change")

// resolve ends an alert, and tells the channels that were told of it.
func (e *Engine) resolve(ctx context.Context, org *control.Organisation, f *control.Firing, at storage.Timestamp) {
	_, err := control.Update(ctx, org, f.ID, func(f *control.Firing) error {
		if f.ResolvedAt != nil {
			return errUnchanged
		}
		f.ResolvedAt = &at
		for _, d := range slices.Clone(f.Deliveries) {
			f.Deliveries = append(f.Deliveries, delivery(f, d.Channel, control.StateResolved))
		}
		return nil
	})
	switch {
	case err == nil:
		e.Logger.Info("an alert is resolved", zap.String("org", e.Org), zap.String("alert", f.Rule), zap.String("id", f.ID))
		e.wakeDelivery()
	case !errors.Is(err, errUnchanged) && ctx.Err() == nil:
		e.Logger.Error("an alert is not resolved", zap.String("alert", f.Rule), zap.String("id", f.ID), zap.Error(err))
	}
}

// wakeDelivery lets the engine look for messages at once.
func (e *Engine) wakeDelivery() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// prune deletes alerts that were resolved long ago. None of those that fired later was.
func prune(ctx context.Context, org *control.Organisation, now storage.Timestamp) error {
	for page := (control.Page{Limit: prunePage}); ; {
		firings, err := org.Firings(ctx, page)
		if err != nil {
			return err
		}
		for _, f := range firings {
			if f.FiredAt >= now-retention {
				return nil
			}
			if f.ResolvedAt == nil || *f.ResolvedAt >= now-retention {
				page.After = f.ID // what is deleted is no place in the list
				continue
			}
			if err := control.Delete[control.Firing](ctx, org, f.ID); err != nil {
				return err
			}
		}
		if len(firings) < prunePage {
			return nil
		}
	}
}
