package llmcontrol

import (
	"errors"
	"strings"

	"github.com/weirhq/weir/storage/control"
)

// An invitation is another shape of the member whom it has added. It is in force at once, and
// accepted when the member first logs in. Its role and projects stay as they were: Terraform
// replaces an invitation that changes.

// invite is how OpenAI writes an invitation.
type invite struct {
	Object     string          `json:"object"`
	ID         string          `json:"id"`
	Email      string          `json:"email"`
	Role       string          `json:"role"` // owner or reader
	Status     string          `json:"status"`
	Projects   []inviteProject `json:"projects"`
	CreatedAt  int64           `json:"created_at"`
	AcceptedAt *int64          `json:"accepted_at"`
	ExpiresAt  *int64          `json:"expires_at"` // null: never
}

type inviteProject struct {
	ID   string `json:"id"`
	Role string `json:"role"`
}

// invitePrefix begins the id of an invitation. The rest is the end of the member's id.
const invitePrefix = "invite-"

func inviteID(member string) string {
	return invitePrefix + strings.TrimPrefix(member, control.MemberPrefix)
}

func memberID(invite string) string {
	return control.MemberPrefix + strings.TrimPrefix(invite, invitePrefix)
}

func describeInvite(m *control.Member, names *projectNames) (invite, error) {
	to := m.Invited
	if to == nil {
		to = &control.Invitation{Role: m.Role, Projects: m.Projects}
	}
	d := invite{
		Object: "organization.invite", ID: inviteID(m.ID), Email: m.Email, Role: control.Reader, Status: "pending",
		Projects: []inviteProject{}, CreatedAt: *seconds(&m.CreatedAt), AcceptedAt: seconds(m.JoinedAt),
	}
	if to.Role == control.Owner {
		d.Role = control.Owner
	}
	if m.JoinedAt != nil {
		d.Status = "accepted"
	}
	projects, err := projectsOf(to.Projects, names)
	for _, p := range projects {
		d.Projects = append(d.Projects, inviteProject{p.ID, p.Role})
	}
	return d, err
}

func createInvite(c *call) (any, error) {
	body := struct {
		Email    string          `json:"email"`
		Role     string          `json:"role"`
		Projects []inviteProject `json:"projects"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	email, ok := control.Email(body.Email)
	switch {
	case !ok:
		return nil, bad("email: one address of ASCII letters is expected, such as ada@example.com")
	case body.Role != control.Owner && body.Role != control.Reader:
		return nil, bad("role: owner or reader is expected")
	case len(body.Projects) > maxList:
		return nil, bad("projects: at most %d", maxList)
	}
	m := &control.Member{Email: email, Role: body.Role}
	for _, in := range body.Projects {
		p, err := control.Get[control.Project](c.ctx, c.org, in.ID)
		if err != nil {
			return nil, err
		}
		if err := join(m, p.Object, in.Role); err != nil {
			return nil, err
		}
	}
	m, err := c.org.AddMember(c.ctx, *m)
	if errors.Is(err, control.ErrTaken) {
		return nil, conflict(email + " is a member already")
	}
	if err != nil {
		return nil, err
	}
	return describeInvite(m, c.projectNames())
}

func listInvites(c *call) (any, error) {
	limit, values, err := c.query("after")
	if err != nil {
		return nil, err
	}
	in, names := control.Page{}, c.projectNames()
	if values[0] != "" {
		in.After = memberID(values[0])
	}
	return listOf(c, in, limit, func(m control.Listed[control.Member]) (string, any, error) {
		described, err := describeInvite(m.Object, names)
		return described.ID, described, err
	})
}

func getInvite(c *call) (any, error) {
	m, err := c.member(memberID(c.r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	return describeInvite(m.Object, c.projectNames())
}

func deleteInvite(c *call) (any, error) {
	m, err := c.member(memberID(c.r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	if m.Object.JoinedAt != nil {
		return nil, conflict("the invitation is accepted: delete the user " + m.Object.ID)
	}
	return deletion{"organization.invite.deleted", inviteID(m.Object.ID), true}, control.DeleteOwner[control.Member](c.ctx, c.org, m.Object.ID)
}
