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

// membership returns the membership of a member in the project of a label.
func membership(m *control.Member, label string) (*control.Membership, error) {
	if in := m.In(label); in != nil {
		return in, nil
	}
	return nil, control.NotFoundError(control.KindMember)
}

func describeProjectUser(m *control.Member, label string) (any, error) {
	in, err := membership(m, label)
	if err != nil {
		return nil, err
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
		in, err := membership(m, p.Label)
		if err == nil {
			in.Role = body.Role
		}
		return err
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
		_, err := membership(m, p.Label)
		m.Leave(p.Label)
		return err
	})
	return deleted{"organization.project.user.deleted", id, true}, err
}
