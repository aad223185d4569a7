package llmcontrol

import "github.com/weirhq/weir/storage/control"

// projectUser is how OpenAI writes a member of a project.
type projectUser struct {
	Object  string  `json:"object"`
	ID      string  `json:"id"`
	Name    *string `json:"name"`
	Email   string  `json:"email"`
	Role    string  `json:"role"`
	AddedAt int64   `json:"added_at"`
}

// membership returns the membership of a member in the project.
func (c *call) membership(m *control.Member) (*control.Membership, error) {
	if in := m.In(c.project.Label); in != nil {
		return in, nil
	}
	return nil, control.NotFoundError(control.KindMember)
}

func (c *call) describeProjectUser(m *control.Member) (any, error) {
	in, err := c.membership(m)
	if err != nil {
		return nil, err
	}
	return projectUser{"organization.project.user", m.ID, optional(m.Name), m.Email, in.Role, *seconds(&in.AddedAt)}, nil
}

func listProjectUsers(c *call) (any, error) {
	limit, values, err := c.query("after")
	if err != nil {
		return nil, err
	}
	return listOf(c, control.Page{List: control.InProject(c.project.Label), After: values[0]}, limit, func(m control.Listed[control.Member]) (string, any, error) {
		described, err := c.describeProjectUser(m.Object)
		return m.Object.ID, described, err
	})
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
	if body.ID == "" {
		m, err := c.memberOf(body.Email)
		if err != nil {
			return nil, err
		}
		body.ID = m.Object.ID
	}
	return c.updateProjectUser(body.ID, func(m *control.Member) error { return join(m, c.project, body.Role) })
}

// updateProjectUser changes a member of the project, or adds a member to the project.
func (c *call) updateProjectUser(id string, set func(*control.Member) error) (any, error) {
	m, err := control.Update(c.ctx, c.org, id, set)
	if err != nil {
		return nil, err
	}
	return c.describeProjectUser(m)
}

func getProjectUser(c *call) (any, error) {
	m, err := c.member(c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return c.describeProjectUser(m.Object)
}

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
	return c.updateProjectUser(c.r.PathValue("id"), func(m *control.Member) error {
		in, err := c.membership(m)
		if err == nil {
			in.Role = body.Role
		}
		return err
	})
}

func deleteProjectUser(c *call) (any, error) {
	id := c.r.PathValue("id")
	_, err := control.Update(c.ctx, c.org, id, func(m *control.Member) error {
		_, err := c.membership(m)
		m.Leave(c.project.Label)
		return err
	})
	return deletion{"organization.project.user.deleted", id, true}, err
}
