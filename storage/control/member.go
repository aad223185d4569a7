package control

import (
	"context"
	"strings"

	"github.com/weirhq/weir/storage"
)

// Member is a person with a role in the organisation.
type Member struct {
	// ID begins with `user_`.
	ID string `json:"id"`
	// Org is the organisation of which the person is a member.
	Org string `json:"organization"`
	// Email is in lower case, and belongs to one member of the organisation.
	Email string `json:"email"`
	// Name is that of the person, "" if unknown.
	Name string `json:"name,omitempty"`
	// Role is what the member may do.
	Role string `json:"role"`
	// CreatedAt is when the member was added.
	CreatedAt storage.Timestamp `json:"created_at"`
}

func (m *Member) object() Object { return Object{ID: m.ID, Kind: KindMember, Name: m.Email} }

// AddMember adds a person to the organisation. The error may be ErrTaken.
func (o *Organisation) AddMember(ctx context.Context, email, name, role string) (*Member, error) {
	m := &Member{ID: newID("user_"), Org: o.Name, Email: strings.ToLower(email), Name: name, Role: role, CreatedAt: now()}
	e, err := created(o, m)
	if err != nil {
		return nil, err
	}
	return m, o.Log.Commit(ctx, o.Name, []Event{e})
}
