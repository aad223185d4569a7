package control

import (
	"context"
	"errors"
	"net/mail"
	"slices"
	"strings"
	"unicode/utf8"

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
	// Name is the name of the person, "" until the issuer has told it.
	Name string `json:"name,omitempty"`
	// Role says what the member may do: Owner, Contributor or Reader.
	Role string `json:"role"`
	// Projects are the projects of the member, in the order of joining.
	Projects []Membership `json:"projects,omitempty"`
	// Invited is the role and the projects with which the member was added. Changes of the
	// member do not change it. It is nil for a member whom an older version added.
	Invited *Invitation `json:"invited,omitempty"`
	// CreatedAt is when the member was added.
	CreatedAt storage.Timestamp `json:"created_at"`
	// JoinedAt is when the member first logged in, or called with a token; nil before that.
	JoinedAt *storage.Timestamp `json:"joined_at"`
}

// Invitation is the role and the projects with which a member was added.
type Invitation struct {
	Role     string       `json:"role"`
	Projects []Membership `json:"projects,omitempty"`
}

// The roles of members.
const (
	Owner       = "owner"
	Contributor = "member"
	Reader      = "reader"
)

// Membership says that a member is in a project.
type Membership struct {
	// Project is the label of the project.
	Project string `json:"project"`
	// Role is Owner or Contributor. It tells people who answers for the project.
	Role string `json:"role"`
	// AddedAt is when the member was added to the project.
	AddedAt storage.Timestamp `json:"added_at"`
}

// MemberPrefix begins the ids of members, and of no other object.
const MemberPrefix = "user_"

func (m *Member) object() Object {
	o := Object{ID: m.ID, Kind: KindMember, Name: m.Email}
	for _, p := range m.Projects {
		o.Lists = append(o.Lists, InProject(p.Project))
	}
	return o
}

// In returns the membership in the project with a label, nil if the member is not in the
// project. The caller may change the membership.
func (m *Member) In(label string) *Membership {
	i := slices.IndexFunc(m.Projects, func(p Membership) bool { return p.Project == label })
	if i < 0 {
		return nil
	}
	return &m.Projects[i]
}

// Leave ends the membership in the project with a label.
func (m *Member) Leave(label string) {
	m.Projects = slices.DeleteFunc(m.Projects, func(p Membership) bool { return p.Project == label })
}

// Join adds the member to the project with a label.
func (m *Member) Join(label, role string) {
	m.Projects = append(m.Projects, Membership{Project: label, Role: role, AddedAt: now()})
}

// maxEmail is the longest address, in bytes (RFC 5321).
const maxEmail = 254

// Email returns an address in lower case, as members have it, and whether it is an address.
// Other letters than ASCII are refused. Some of them become ASCII in lower case, such as the
// sign of Kelvin, and the lower-case address would belong to somebody else.
func Email(text string) (string, bool) {
	a, err := mail.ParseAddress(text)
	ascii := !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
	return strings.ToLower(text), err == nil && a.Address == text && ascii && len(text) <= maxEmail
}

// AddMember adds a person with the email, the role and the projects of m. The error may be
// ErrTaken.
func (o *Organisation) AddMember(ctx context.Context, m Member) (*Member, error) {
	m.ID, m.Org, m.Email, m.CreatedAt = newID(MemberPrefix), o.Name, strings.ToLower(m.Email), now()
	m.Invited = &Invitation{Role: m.Role, Projects: slices.Clone(m.Projects)}
	return &m, create(ctx, o, &m)
}

// errJoined means that a member has joined before.
var errJoined = errors.New("the member has joined")

// MemberJoined notes that a member has logged in for the first time. name is what the issuer
// calls the member, "" if unknown.
func (o *Organisation) MemberJoined(ctx context.Context, id, name string) error {
	_, err := update(ctx, o, id, Joined, func(m *Member) error {
		if m.JoinedAt != nil {
			return errJoined
		}
		m.JoinedAt, m.Name = new(now()), name
		return nil
	})
	if errors.Is(err, errJoined) {
		err = nil
	}
	return err
}
