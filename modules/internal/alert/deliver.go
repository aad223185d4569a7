package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

const (
	// sendTimeout bounds an attempt. For claimTime, no other node begins the next one.
	sendTimeout = 15 * time.Second
	claimTime   = time.Minute
	// slowChannel is the time after which a call of Deliver sends no further message to a channel.
	slowChannel = 5 * time.Second
	// firstRetry is the pause after the first attempt. Pauses grow up to lastRetry, and attempts end
	// after maxRetryTime.
	firstRetry   = 5 * time.Second
	lastRetry    = time.Hour
	maxRetryTime = 24 * time.Hour
	// alertAttempts is the number of failed attempts after which a channel is an alert by itself.
	alertAttempts = 3
)

// channelRule begins the names of the alerts about channels.
const channelRule = "channel "

// errStopped is the error of an attempt that ended with the process: it is not counted.
var errStopped = errors.New("stopped")

// Deliver makes one attempt for each message that is due. Messages of one channel about one alert
// go out in order. A channel that fails is not tried again before the next call.
func (e *Engine) Deliver(ctx context.Context) {
	org, err := e.Organisation()
	var waiting []*control.Firing
	if err == nil {
		waiting, err = org.Firings(ctx, control.Page{List: control.Undelivered})
	}
	if err != nil {
		if ctx.Err() == nil {
			e.Logger.Error("messages about alerts cannot be read", zap.Error(err))
		}
		return
	}
	due := make(map[string][]message)
	now := storage.Millis(time.Now())
	for _, f := range waiting {
		earlier := make(map[string]bool)
		for _, d := range f.Deliveries {
			if d.NextAt == nil || earlier[d.Channel] {
				continue
			}
			earlier[d.Channel] = true
			if *d.NextAt <= now {
				due[d.Channel] = append(due[d.Channel], message{f, d})
			}
		}
	}
	var channels sync.WaitGroup
	for _, messages := range due {
		channels.Go(func() {
			begun := time.Now() // a slow channel leaves the rest to the next call: the others wait for it
			for _, m := range messages {
				if _, err := e.attempt(ctx, org, m); err != nil || time.Since(begun) > slowChannel {
					return
				}
			}
		})
	}
	channels.Wait()
}

// message is one message about an alert.
type message struct {
	*control.Firing
	control.Delivery
}

// update changes a delivery, as the log has it now.
func update(ctx context.Context, org *control.Organisation, m message, set func(*control.Firing, *control.Delivery) error) error {
	_, err := control.Amend(ctx, org, m.Firing.ID, func(f *control.Firing) error {
		i := slices.IndexFunc(f.Deliveries, func(d control.Delivery) bool { return d.ID == m.Delivery.ID })
		if i < 0 {
			return errUnchanged
		}
		return set(f, &f.Deliveries[i])
	})
	return err
}

// attempt sends a message and keeps what became of it. It does nothing if another node has begun
// an attempt.
func (e *Engine) attempt(ctx context.Context, org *control.Organisation, m message) (control.Delivery, error) {
	due := *m.NextAt
	err := update(ctx, org, m, func(_ *control.Firing, d *control.Delivery) error {
		if d.NextAt == nil || *d.NextAt != due {
			return errUnchanged
		}
		until := storage.Millis(time.Now().Add(claimTime))
		d.NextAt, d.Attempts = &until, d.Attempts+1
		m.Delivery = *d
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return m.Delivery, nil
	}
	if err == nil {
		err = e.sendTo(ctx, m)
		if ctx.Err() != nil && err != nil {
			return m.Delivery, errStopped
		}
		if unsaved := e.keep(context.WithoutCancel(ctx), org, &m, err); unsaved != nil {
			err = errors.Join(err, unsaved)
			e.Logger.Error("it is not kept what became of a message, which is sent again", zap.String("id", m.Delivery.ID), zap.Error(unsaved))
		}
	}
	return m.Delivery, err
}

func (e *Engine) sendTo(ctx context.Context, m message) error {
	c := e.channel(m.Channel)
	if c == nil {
		return fmt.Errorf("there is no channel %s in the configuration", m.Channel)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if err := c.send(ctx, m); err != nil {
		return errors.New(c.redact(err.Error()))
	}
	return nil
}

// keep keeps what became of an attempt, and whether the channel is an alert.
func (e *Engine) keep(ctx context.Context, org *control.Organisation, m *message, failure error) error {
	err := update(ctx, org, *m, func(_ *control.Firing, d *control.Delivery) error {
		now := time.Now()
		d.NextAt, d.Error = nil, ""
		if failure == nil {
			at := storage.Millis(now)
			d.DeliveredAt = &at
		} else {
			d.Error = failure.Error()
			pause := min(firstRetry<<min(d.Attempts-1, 20), lastRetry)
			if next := now.Add(pause); next.Before(d.CreatedAt.Time().Add(maxRetryTime)) && d.State != control.StateTest {
				at := storage.Millis(next)
				d.NextAt = &at
			}
		}
		m.Delivery = *d
		return nil
	})
	if err != nil {
		return err
	}
	if failure == nil {
		return e.healthy(ctx, org, m.Channel)
	}
	e.Logger.Error("a message about an alert is not delivered", zap.String("channel", m.Channel), zap.String("alert", m.Rule),
		zap.String("id", m.Delivery.ID), zap.Int("attempts", m.Attempts), zap.Bool("again", m.NextAt != nil), zap.Error(failure))
	if m.Attempts < alertAttempts || m.Per == "channel" {
		return nil
	}
	return e.unhealthy(ctx, org, m.Channel)
}

// unhealthy tells the other channels of a channel that fails.
func (e *Engine) unhealthy(ctx context.Context, org *control.Organisation, channel string) error {
	firing, err := org.Firings(ctx, control.Page{List: control.Unresolved})
	if err != nil {
		return err
	}
	rule := channelRule + channel
	if slices.ContainsFunc(firing, func(f *control.Firing) bool { return f.Rule == rule }) {
		return nil
	}
	now := time.Now()
	f := &control.Firing{
		ID:  alertID(rule, channel, storage.Millis(now.Truncate(shortestSlot))),
		Org: e.Org, Rule: rule, Per: "channel", Subject: channel, Condition: "messages are not delivered", Value: alertAttempts, FiredAt: storage.Millis(now),
	}
	return e.fire(ctx, org, f, slices.DeleteFunc(e.ChannelNames(), func(name string) bool { return name == channel }))
}

// healthy resolves the alert about a channel that takes messages again.
func (e *Engine) healthy(ctx context.Context, org *control.Organisation, channel string) error {
	firing, err := org.Firings(ctx, control.Page{List: control.Unresolved})
	for _, f := range firing {
		if f.Rule == channelRule+channel {
			e.resolve(ctx, org, f, storage.Millis(time.Now()))
		}
	}
	return err
}

// Redeliver has the messages of an alert sent again that are not delivered, or all of them, with
// their ids.
func (e *Engine) Redeliver(ctx context.Context, org *control.Organisation, id string) (*control.Firing, error) {
	f, err := control.Update(ctx, org, id, func(f *control.Firing) error {
		undelivered := slices.ContainsFunc(f.Deliveries, func(d control.Delivery) bool { return d.DeliveredAt == nil })
		now := storage.Millis(time.Now())
		for i := range f.Deliveries {
			if d := &f.Deliveries[i]; !undelivered || d.DeliveredAt == nil {
				d.CreatedAt, d.NextAt, d.DeliveredAt, d.Attempts, d.Error = now, &now, nil, 0, ""
			}
		}
		return nil
	})
	e.wakeDelivery()
	return f, err
}

// ErrNoChannel means that the configuration has no channel of a name.
var ErrNoChannel = errors.New("there is no such channel in the configuration")

// Test sends a message to a channel, once, and returns what became of it.
func (e *Engine) Test(ctx context.Context, org *control.Organisation, channel string) (control.Delivery, error) {
	if e.channel(channel) == nil {
		return control.Delivery{}, ErrNoChannel
	}
	now := storage.Millis(time.Now())
	f := &control.Firing{
		ID: "alert_" + digest("test", channel, time.Now().String()), Org: e.Org, Rule: "test", Condition: "somebody tests the channel",
		FiredAt: now, ResolvedAt: &now,
	}
	d := delivery(f, channel, control.StateTest)
	f.Deliveries = []control.Delivery{d}
	if _, err := org.Fire(ctx, f); err != nil {
		return d, err
	}
	d, err := e.attempt(ctx, org, message{f, d})
	if d.Error != "" { // kept, and answered as it is
		err = nil
	}
	return d, err
}
