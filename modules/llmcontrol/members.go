package llmcontrol

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/weirhq/weir/storage/control"
)

// Members have two shapes in OpenAI's API: users, and the invitations by which they were added.
// An invitation is in force at once, and accepted when the member first logs in.

// user is how OpenAI writes a member.
type user struct {
	Object     string       `json:"object"`
	ID         string       `json:"id"`
	Name       *string      `json:"name"` // null until the member first logs in
	Email      string       `json:"email"`
	Role       string       `json:"role"`
	AddedAt    int64        `json:"added_at"`
	LastUsedAt *int64       `json:"api_key_last_used_at"` // of tokens, too; null for never
	Projects   userProjects `json:"projects"`
}

type userProjects struct {
	Object string        `json:"object"`
	Data   []userProject `json:"data"`
}

type userProject struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Role string `json:"role"`
}

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

// invitePrefix begins the ids of invitations; the rest is that of the member's id.
const invitePrefix = "invite-"

func inviteID(member string) string {
	return invitePrefix + strings.TrimPrefix(member, control.MemberPrefix)
}

func memberID(invite string) string {
	return control.MemberPrefix + strings.TrimPrefix(invite, invitePrefix)
}

// projectsOf are the projects of a member that there are.
func projectsOf(m *control.Member, names *projectNames) (all []userProject, err error) {
	for _, in := range m.Projects {
		p, err := names.of(in.Project)
		if err != nil {
			return nil, err
		}
		if p != nil {
			all = append(all, userProject{p.ID, p.Name, in.Role})
		}
	}
	return all, nil
}

// optional is a text, nil for "".
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func describeUser(m control.Listed[control.Member], names *projectNames) (user, error) {
	projects, err := projectsOf(m.Object, names)
	return user{
		Object: "organization.user", ID: m.Object.ID, Name: optional(m.Object.Name), Email: m.Object.Email, Role: m.Object.Role,
		AddedAt: *seconds(&m.Object.CreatedAt), LastUsedAt: seconds(m.UsedAt), Projects: userProjects{"list", append([]userProject{}, projects...)},
	}, err
}

func describeInvite(m *control.Member, names *projectNames) (invite, error) {
	d := invite{
		Object: "organization.invite", ID: inviteID(m.ID), Email: m.Email, Role: control.Reader, Status: "pending",
		Projects: []inviteProject{}, CreatedAt: *seconds(&m.CreatedAt), AcceptedAt: seconds(m.JoinedAt),
	}
	if m.Role == control.Owner {
		d.Role = control.Owner
	}
	if m.JoinedAt != nil {
		d.Status = "accepted"
	}
	projects, err := projectsOf(m, names)
	for _, p := range projects {
		d.Projects = append(d.Projects, inviteProject{p.ID, p.Role})
	}
	return d, err
}

func (c *call) projectNames() *projectNames { return &projectNames{ctx: c.ctx, org: c.org} }

// listUsers takes GET /v1/organization/users.
func listUsers(c *call) (any, error) {
	var emails []string
	rest := url.Values{}
	for name, values := range c.r.URL.Query() {
		if strings.TrimSuffix(name, "[]") == "emails" {
			emails = append(emails, values...)
		} else {
			rest[name] = values
		}
	}
	limit, values, err := queryOf(rest, "after")
	if err != nil {
		return nil, err
	}
	names := c.projectNames()
	if emails == nil {
		return listOf(c, control.Page{After: values[0]}, limit, func(m control.Listed[control.Member]) (string, any, error) {
			described, err := describeUser(m, names)
			return m.Object.ID, described, err
		})
	}
	if values[0] != "" || len(emails) > maxList {
		return nil, bad("emails: at most %d, which are one page", maxList)
	}
	found := openAIPage{Object: "list", Data: []any{}}
	for _, email := range emails {
		m, err := c.memberOf(email)
		if errors.Is(err, control.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		described, err := describeUser(m, names)
		if err != nil {
			return nil, err
		}
		found.add(m.Object.ID, described)
	}
	return found, nil
}

// memberOf returns the member who has an email.
func (c *call) memberOf(email string) (control.Listed[control.Member], error) {
	m, err := control.Named[control.Member](c.ctx, c.org, strings.ToLower(email))
	if errors.Is(err, control.ErrNotFound) {
		err = control.NotFoundError(control.KindMember)
	}
	if err != nil {
		return control.Listed[control.Member]{}, err
	}
	return c.member(m.ID)
}

func (c *call) member(id string) (control.Listed[control.Member], error) {
	return control.Get[control.Member](c.ctx, c.org, id)
}

// getUser takes GET /v1/organization/users/{id}.
func getUser(c *call) (any, error) {
	m, err := c.member(c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return describeUser(m, c.projectNames())
}

// updateUser takes POST /v1/organization/users/{id}.
func updateUser(c *call) (any, error) {
	body := struct {
		Role string `json:"role"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{control.Owner, control.Contributor, control.Reader}, body.Role) {
		return nil, bad("role: owner, member or reader is expected")
	}
	id := c.r.PathValue("id")
	if _, err := control.Update(c.ctx, c.org, id, func(m *control.Member) error {
		m.Role = body.Role
		return nil
	}); err != nil {
		return nil, err
	}
	return getUser(c)
}

// deleteUser takes DELETE /v1/organization/users/{id}.
func deleteUser(c *call) (any, error) {
	id := c.r.PathValue("id")
	return deleted{"organization.user.deleted", id, true}, control.DeleteOwner[control.Member](c.ctx, c.org, id)
}

// createInvite takes POST /v1/organization/invites.
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

// join adds a member to a project.
func join(m *control.Member, p *control.Project, role string) error {
	switch {
	case p.ArchivedAt != nil:
		return control.ErrArchived
	case m.In(p.Label) != nil:
		return conflict("the member is in the project already")
	case len(m.Projects) == maxList:
		return conflict("a member is in at most 100 projects")
	}
	m.Join(p.Label, role)
	return checkProjectRole(role)
}

func checkProjectRole(role string) error {
	if role != control.Owner && role != control.Contributor {
		return bad("role: owner or member is expected in a project")
	}
	return nil
}

// listInvites takes GET /v1/organization/invites.
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

// getInvite takes GET /v1/organization/invites/{id}.
func getInvite(c *call) (any, error) {
	m, err := c.member(memberID(c.r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	return describeInvite(m.Object, c.projectNames())
}

// deleteInvite takes DELETE /v1/organization/invites/{id}.
func deleteInvite(c *call) (any, error) {
	m, err := c.member(memberID(c.r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	if m.Object.JoinedAt != nil {
		return nil, conflict("the invitation is accepted: delete the user " + m.Object.ID)
	}
	return deleted{"organization.invite.deleted", inviteID(m.Object.ID), true}, control.DeleteOwner[control.Member](c.ctx, c.org, m.Object.ID)
}

// projectUser is how OpenAI writes a member of a project.
type projectUser struct {
	Object  string  `json:"object"`
	ID      string  `json:"id"`
	Name    *string `json:"name"`
	Email   string  `json:"email"`
	Role    string  `json:"role"`
	AddedAt int64   `json:"added_at"`
}

func describeProjectUser(m *control.Member, label string) (any, error) {
	in := m.In(label)
	if in == nil {
		return nil, control.NotFoundError(control.KindMember)
	}
	return projectUser{"organization.project.user", m.ID, optional(m.Name), m.Email, in.Role, *seconds(&in.AddedAt)}, nil
}

// listProjectUsers takes GET /v1/organization/projects/{project}/users.
func listProjectUsers(c *call) (any, error) {
	limit, values, err := c.query("after")
	if err != nil {
		return nil, err
	}
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	return listOf(c, control.Page{List: control.InProject(p.Label), After: values[0]}, limit, func(m control.Listed[control.Member]) (string, any, error) {
		described, err := describeProjectUser(m.Object, p.Label)
		return m.Object.ID, described, err
	})
}

// createProjectUser takes POST /v1/organization/projects/{project}/users.
func createProjectUser(c *call) (any, error) {
	body := struct {
		ID    string `json:"user_id"`
		Email string `json:"email"`
		Role  string `json:"role"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if (body.ID == "") == (body.Email == "") {
		return nil, bad("user_id or email is expected")
	}
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	if body.ID == "" {
		m, err := c.memberOf(body.Email)
		if err != nil {
			return nil, err
		}
		body.ID = m.Object.ID
	}
	return c.updateProjectUser(body.ID, p, func(m *control.Member) error { return join(m, p, body.Role) })
}

// updateProjectUser changes a member of a project, or makes one of it.
func (c *call) updateProjectUser(id string, p *control.Project, set func(*control.Member) error) (any, error) {
	m, err := control.Update(c.ctx, c.org, id, set)
	if err != nil {
		return nil, err
	}
	return describeProjectUser(m, p.Label)
}

// getProjectUser takes GET /v1/organization/projects/{project}/users/{id}.
func getProjectUser(c *call) (any, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	m, err := c.member(c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return describeProjectUser(m.Object, p.Label)
}

// setProjectUser takes POST /v1/organization/projects/{project}/users/{id}.
func setProjectUser(c *call) (any, error) {
	body := struct {
		Role string `json:"role"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if err := checkProjectRole(body.Role); err != nil {
		return nil, err
	}
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	return c.updateProjectUser(c.r.PathValue("id"), p, func(m *control.Member) error {
		in := m.In(p.Label)
		if in == nil {
			return control.NotFoundError(control.KindMember)
		}
		in.Role = body.Role
		return nil
	})
}

// deleteProjectUser takes DELETE /v1/organization/projects/{project}/users/{id}.
func deleteProjectUser(c *call) (any, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	id := c.r.PathValue("id")
	_, err = control.Update(c.ctx, c.org, id, func(m *control.Member) error {
		if m.In(p.Label) == nil {
			return control.NotFoundError(control.KindMember)
		}
		m.Leave(p.Label)
		return nil
	})
	return deleted{"organization.project.user.deleted", id, true}, err
}
