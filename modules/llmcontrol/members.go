package llmcontrol

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/weirhq/weir/storage/control"
)

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

// projectsOf returns the projects of a member's memberships, without projects that no longer exist.
func projectsOf(in []control.Membership, names *projectNames) ([]userProject, error) {
	all := []userProject{}
	for _, m := range in {
		p, err := names.find(m.Project)
		if err != nil {
			return nil, err
		}
		if p != nil {
			all = append(all, userProject{p.ID, p.Name, m.Role})
		}
	}
	return all, nil
}

// optional returns a text, nil for "".
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func describeUser(m control.Listed[control.Member], names *projectNames) (user, error) {
	projects, err := projectsOf(m.Object.Projects, names)
	return user{
		Object: "organization.user", ID: m.Object.ID, Name: optional(m.Object.Name), Email: m.Object.Email, Role: m.Object.Role,
		AddedAt: *seconds(&m.Object.CreatedAt), LastUsedAt: seconds(m.UsedAt), Projects: userProjects{"list", projects},
	}, err
}

func (c *call) projectNames() *projectNames { return &projectNames{ctx: c.ctx, org: c.org} }

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
	limit, values, err := queryOf(rest, maxPage, "after")
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

func getUser(c *call) (any, error) {
	m, err := c.member(c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return describeUser(m, c.projectNames())
}

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

func deleteUser(c *call) (any, error) {
	id := c.r.PathValue("id")
	return deletion{"organization.user.deleted", id, true}, control.DeleteOwner[control.Member](c.ctx, c.org, id)
}
