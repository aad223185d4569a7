package control

import (
	"context"
	"errors"
	"slices"

	"github.com/weirhq/weir/storage"
)

// Firing is an alert that a rule has raised for one subject. Its id is the same at all nodes, so
// that one of them raises it.
type Firing struct {
	// ID begins with `alert_`.
	ID string `json:"id"`
	// Org is the organisation whose calls the alert is about.
	Org string `json:"organization"`
	// Rule is the name of the rule.
	Rule string `json:"rule"`
	// Per is the attribute of Subject, "" if the alert is about all calls of the rule.
	Per     string `json:"per,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Condition is the condition of the rule in words.
	Condition string `json:"condition"`
	// Value is what was compared when the alert fired.
	Value float64 `json:"value"`
	// FiredAt and ResolvedAt are when the condition became true, and when it was false again;
	// ResolvedAt is nil until then.
	FiredAt    storage.Timestamp  `json:"fired_at"`
	ResolvedAt *storage.Timestamp `json:"resolved_at"`
	// Deliveries are the messages about the alert, one for each channel and state.
	Deliveries []Delivery `json:"deliveries"`
}

// Delivery is a message that is sent to a channel until the channel takes it.
type Delivery struct {
	// ID is the same in all attempts.
	ID string `json:"id"`
	// Channel is the name of the channel.
	Channel string `json:"channel"`
	// State is what the message tells: StateFiring, StateResolved or StateTest.
	State string `json:"state"`
	// Attempts counts the attempts, and Error says why the last one failed.
	Attempts int    `json:"attempts"`
	Error    string `json:"error,omitempty"`
	// CreatedAt is when the message was made, or asked for again.
	CreatedAt storage.Timestamp `json:"created_at"`
	// NextAt is when the next attempt may begin, nil if there is none. A node that begins an
	// attempt moves it into the future, so that no other node begins the same.
	NextAt *storage.Timestamp `json:"next_at"`
	// DeliveredAt is when the channel took the message, nil if it has not.
	DeliveredAt *storage.Timestamp `json:"delivered_at"`
}

// The states of which a message tells.
const (
	StateFiring   = "firing"
	StateResolved = "resolved"
	StateTest     = "test"
)

const (
	// Unresolved is the list of alerts that fire.
	Unresolved List = "unresolved"
	// Undelivered is the list of alerts with a message that waits.
	Undelivered List = "undelivered"
)

func (f *Firing) object() Object {
	o := Object{ID: f.ID, Kind: KindFiring, Name: f.ID}
	if f.ResolvedAt == nil {
		o.Lists = append(o.Lists, Unresolved)
	}
	if slices.ContainsFunc(f.Deliveries, func(d Delivery) bool { return d.NextAt != nil }) {
		o.Lists = append(o.Lists, Undelivered)
	}
	return o
}

// Fire keeps a new alert. It reports false if the alert is there already, because another node
// was first.
func (o *Organisation) Fire(ctx context.Context, f *Firing) (first bool, err error) {
	err = create(ctx, o, f)
	if errors.Is(err, ErrTaken) {
		return false, nil
	}
	return err == nil, err
}

// Firings returns alerts of a list, or all if the list is "".
func (o *Organisation) Firings(ctx context.Context, p Page) (all []*Firing, err error) {
	page, err := All[Firing](ctx, o, p)
	for _, f := range page {
		all = append(all, f.Object)
	}
	return all, err
}
