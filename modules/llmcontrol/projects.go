package llmcontrol

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// projectsPath begins the paths of one project.
const projectsPath = organizationPath + "projects/{project}/"

// agentScopes are the scopes of a service account's new key unless the caller names scopes.
var agentScopes = []string{access.ScopeGateway, access.ScopeLog}

// project is a project in OpenAI's format.
type project struct {
	Object     string `json:"object"`
	ID         string `json:"id"`
	Name       string `json:"name"`
	CreatedAt  int64  `json:"created_at"`
	ArchivedAt *int64 `json:"archived_at"` // null while the project is in use
	Status     string `json:"status"`
}

func describeProject(p *control.Project) project {
	d := project{
		Object: "organization.project", ID: p.ID, Name: p.Name,
		CreatedAt: *seconds(&p.CreatedAt), ArchivedAt: seconds(p.ArchivedAt), Status: "active",
	}
	if p.ArchivedAt != nil {
		d.Status = "archived"
	}
	return d
}

// readName reads a body that has a name, and nothing else.
func (c *call) readName() (name string, err error) {
	body := struct {
		Name string `json:"name"`
	}{}
	if err := c.decode(&body); err != nil {
		return "", err
	}
	return body.Name, checkName(body.Name)
}

func checkName(name string) error {
	if name == "" || len(name) > maxText || strings.ContainsFunc(name, unicode.IsControl) {
		return bad("name: a text of 1 to %d bytes without control characters is expected", maxText)
	}
	return nil
}

// described returns an object as describe writes it, or the error in its place.
func described[T, D any](object T, err error, describe func(T) D) (any, error) {
	if err != nil {
		return nil, err
	}
	return describe(object), nil
}

func createProject(c *call) (any, error) {
	name, err := c.readName()
	if err != nil {
		return nil, err
	}
	p, err := c.org.CreateProject(c.ctx, name)
	if errors.Is(err, control.ErrTaken) {
		return nil, conflict("a project has, or began with, the name " + name)
	}
	return described(p, err, describeProject)
}

func listProjects(c *call) (any, error) {
	limit, values, err := c.query("after", "include_archived")
	if err != nil {
		return nil, err
	}
	in := control.Page{List: control.InUse, After: values[0]}
	switch values[1] {
	case "", "false":
	case "true":
		in.List = ""
	default:
		return nil, bad("include_archived: true or false is expected")
	}
	return listOf(c, in, limit, func(p control.Listed[control.Project]) (string, any, error) {
		return p.Object.ID, describeProject(p.Object), nil
	})
}

// listOf returns a page of OpenAI's lists. describe returns the id of an object, and the
// object as OpenAI writes it.
func listOf[T any, V interface {
	*T
	control.Value
}](c *call, in control.Page, limit int, describe func(control.Listed[T]) (string, any, error)) (any, error) {
	in.Limit = limit + 1
	list, err := control.All[T, V](c.ctx, c.org, in)
	if err != nil {
		return nil, err
	}
	p := openAIPage{Object: "list", Data: []any{}, HasMore: len(list) > limit}
	for _, o := range list[:min(len(list), limit)] {
		id, described, err := describe(o)
		if err != nil {
			return nil, err
		}
		p.add(id, described)
	}
	return p, nil
}

// add appends an object.
func (p *openAIPage) add(id string, described any) {
	if p.FirstID == nil {
		p.FirstID = &id
	}
	p.LastID, p.Data = &id, append(p.Data, described)
}

func getProject(c *call) (any, error) { return describeProject(c.project), nil }

func updateProject(c *call) (any, error) {
	name, err := c.readName()
	if err != nil {
		return nil, err
	}
	p, err := c.org.UpdateProject(c.ctx, c.project.ID, func(p *control.Project) error {
		p.Name = name
		return nil
	})
	return described(p, err, describeProject)
}

func archiveProject(c *call) (any, error) {
	p, err := c.org.ArchiveProject(c.ctx, c.project.ID)
	return described(p, err, describeProject)
}

// modelPermissions says which models a project may call, in OpenAI's format.
type modelPermissions struct {
	Object   string   `json:"object"`
	Mode     string   `json:"mode"`
	ModelIDs []string `json:"model_ids"`
}

// describeModels returns the permissions of a project. A project without any may call all models: its
// list of refused models is empty.
func describeModels(p *control.Project) modelPermissions {
	d := modelPermissions{"project.model_permissions", control.DenyList, []string{}}
	if p.Models != nil {
		d.Mode, d.ModelIDs = p.Models.Mode, append(d.ModelIDs, p.Models.IDs...)
	}
	return d
}

func getModels(c *call) (any, error) { return describeModels(c.project), nil }

func setModels(c *call) (any, error) {
	body := new(control.ModelPermissions)
	if err := c.decode(body); err != nil {
		return nil, err
	}
	switch {
	case body.Mode != control.AllowList && body.Mode != control.DenyList:
		return nil, bad("mode: %s or %s is expected", control.AllowList, control.DenyList)
	case body.IDs == nil || len(body.IDs) > maxList:
		return nil, bad("model_ids: a list of at most %d models is expected", maxList)
	}
	for _, id := range body.IDs {
		if err := checkName(id); err != nil {
			return nil, bad("model_ids: %q is no model", id)
		}
	}
	p, err := c.setModels(body)
	return described(p, err, describeModels)
}

func (c *call) setModels(models *control.ModelPermissions) (*control.Project, error) {
	return c.org.UpdateProject(c.ctx, c.project.ID, func(p *control.Project) error {
		p.Models = models
		return nil
	})
}

func deleteModels(c *call) (any, error) {
	_, err := c.setModels(nil)
	return deletion{Object: "project.model_permissions.deleted", Deleted: true}, err
}

// deletion is OpenAI's answer to a DELETE.
type deletion struct {
	Object  string `json:"object"`
	ID      string `json:"id,omitempty"`
	Deleted bool   `json:"deleted"`
}

// conflict is the error for a change that the present state does not allow.
func conflict(message string) error {
	return &plugins.Error{Status: http.StatusConflict, Message: message}
}

// expiry returns the time that is n seconds away, nil for never if n is nil.
func expiry(n *int64) (*storage.Timestamp, error) {
	if n == nil {
		return nil, nil
	}
	if *n < 1 || *n > int64(maxExpiry/time.Second) {
		return nil, bad("expires_in_seconds: a number from 1 to %d is expected", int64(maxExpiry/time.Second))
	}
	ends := storage.Millis(time.Now()) + storage.Timestamp(*n*1000)
	return &ends, nil
}

// labels returns the labels of projects by their ids, because records and events have the labels. If no
// project has an id, the id is a label.
func (c *call) labels(ids []string) (labels []string, err error) {
	for _, id := range ids {
		p, err := control.Get[control.Project](c.ctx, c.org, id)
		switch {
		case err == nil:
			id = p.Object.Label
		case !errors.Is(err, control.ErrNotFound):
			return nil, err
		}
		labels = append(labels, id)
	}
	return labels, nil
}

// projectNames finds the ids and names of projects by their labels.
type projectNames struct {
	ctx    context.Context
	org    *control.Organisation
	cached map[string]*control.Project
}

// find returns the project that has a label, nil if no project has it.
func (n *projectNames) find(label string) (*control.Project, error) {
	if p, known := n.cached[label]; known || label == "" {
		return p, nil
	}
	p, err := control.Named[control.Project](n.ctx, n.org, label)
	if err != nil && !errors.Is(err, control.ErrNotFound) {
		return nil, err
	}
	if n.cached == nil {
		n.cached = make(map[string]*control.Project)
	}
	n.cached[label] = p
	return p, nil
}
