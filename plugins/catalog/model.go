package catalog

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/plugins"
)

// Model is what one provider says about one of its models. Zero values mean
// unknown, and a capability that is false is one that no source claims.
type Model struct {
	// Provider is Weir's name of the provider that serves the model.
	Provider string `json:"-"`
	// ID is the name that the provider's API takes.
	ID string `json:"id"`
	// Name is the name for people.
	Name string `json:"name,omitempty"`
	// Owner is the maker, such as "meta" for a Llama on any provider.
	Owner string `json:"owner,omitempty"`
	// Aliases are other names that the provider has for the same model.
	Aliases []string `json:"aliases,omitempty"`
	// Match is the rule for names that are neither ID nor alias.
	Match *Match `json:"match,omitempty"`

	plugins.Capabilities
	// Context is the number of tokens that input and output may have together.
	Context int64 `json:"context,omitempty"`
	// MaxInput is the number of tokens the input may have.
	MaxInput int64 `json:"max_input,omitempty"`
	// Released is the day the model came out.
	Released Date `json:"released,omitzero"`

	// Prices are what the model costs. Of those that hold for a call, the last
	// one counts.
	Prices []Price `json:"prices,omitempty"`
}

// Multimodal reports whether the model takes or gives more than one kind of
// content.
func (m *Model) Multimodal() bool { return len(m.Input) > 1 || len(m.Output) > 1 }

// Date is a day, in days since 1 January 1970 UTC. The zero Date is unknown.
type Date int32

const day = 24 * 60 * 60

func dateOf(t time.Time) Date {
	s := t.Unix()
	return Date((s - ((s%day)+day)%day) / day)
}

// ParseDate reads a date such as "2025-06-10".
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a date; write it as YYYY-MM-DD", s)
	}
	return dateOf(t), nil
}

// Time is the beginning of the day in UTC.
func (d Date) Time() time.Time { return time.Unix(int64(d)*day, 0).UTC() }

func (d Date) String() string { return d.Time().Format(time.DateOnly) }

// MarshalText writes the date as YYYY-MM-DD.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Date) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDate(string(b))
	return err
}
