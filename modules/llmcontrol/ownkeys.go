package llmcontrol

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

const (
	// defaultMaxKeys bounds the keys of each creator in a project, unless the administrator sets
	// another bound, up to maxOwnKeys.
	defaultMaxKeys = 10
	maxOwnKeys     = 1000
	// defaultMaxLifetime bounds the life of such a key, unless the administrator sets another bound.
	defaultMaxLifetime = 90 * 24 * time.Hour
)

// keyPermissions says who may create keys of their own in a project, in the form of OpenAI's objects.
type keyPermissions struct {
	Object string `json:"object"`
	control.KeyPermissions
}

func describeKeyPermissions(p *control.Project) keyPermissions {
	d := keyPermissions{Object: "project.key_permissions", KeyPermissions: control.KeyPermissions{Creators: []string{}}}
	if p.Keys != nil {
		d.KeyPermissions = *p.Keys
	}
	return d
}

func getKeyPermissions(c *call) (any, error) { return describeKeyPermissions(c.project), nil }

func setKeyPermissions(c *call) (any, error) {
	body := control.KeyPermissions{MaxKeys: defaultMaxKeys, MaxLifetime: int64(defaultMaxLifetime / time.Second)}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	all := []string{control.CreatorOwners, control.CreatorMembers, control.CreatorKeys}
	switch {
	case len(body.Creators) == 0 || len(body.Creators) > len(all) || slices.ContainsFunc(body.Creators, func(who string) bool { return !slices.Contains(all, who) }):
		return nil, bad("creators: any of %s is expected; DELETE allows nobody", strings.Join(all, ", "))
	case body.MaxKeys < 1 || body.MaxKeys > maxOwnKeys:
		return nil, bad("max_keys: a number from 1 to %d is expected", maxOwnKeys)
	case body.MaxLifetime < 1 || body.MaxLifetime > int64(maxExpiry/time.Second):
		return nil, bad("max_lifetime_seconds: a number from 1 to %d is expected", int64(maxExpiry/time.Second))
	}
	p, err := c.setKeyPermissions(&body)
	return described(p, err, describeKeyPermissions)
}

func (c *call) setKeyPermissions(keys *control.KeyPermissions) (*control.Project, error) {
	return c.org.UpdateProject(c.ctx, c.project.ID, func(p *control.Project) error {
		p.Keys = keys
		return nil
	})
}

func deleteKeyPermissions(c *call) (any, error) {
	_, err := c.setKeyPermissions(nil)
	return deletion{Object: "project.key_permissions.deleted", Deleted: true}, err
}

// creator is a caller who may create keys of their own.
type creator struct {
	control.Creator
	member *control.Member // nil for a key
}

// creator returns the caller as a creator, nil if the caller's key cannot create keys.
func (c *call) creator() (*creator, error) {
	by, ok := c.key.Creator()
	if !ok {
		return nil, nil
	}
	found := &creator{Creator: by}
	if c.key.Member() != "" {
		m, err := c.member(by.ID)
		if err != nil {
			return nil, err
		}
		found.member = m.Object
	}
	return found, nil
}

// projects returns the labels of the caller's projects, whether they allow the caller to create keys
// or not.
func (by *creator) projects(key *access.Key) (labels []string) {
	if by.member == nil {
		return []string{key.Created().Project}
	}
	for _, m := range by.member.Projects {
		labels = append(labels, m.Project)
	}
	return labels
}

// allowed reports whether a project allows the caller to create keys.
func (by *creator) allowed(p *control.Project) bool {
	if p.Keys == nil || p.ArchivedAt != nil {
		return false
	}
	if by.member == nil {
		return slices.Contains(p.Keys.Creators, control.CreatorKeys)
	}
	in := by.member.In(p.Label)
	return in != nil && (slices.Contains(p.Keys.Creators, control.CreatorMembers) ||
		in.Role == control.Owner && slices.Contains(p.Keys.Creators, control.CreatorOwners))
}

// ownProject is a project in which the caller may create keys of their own.
type ownProject struct {
	Project     string `json:"project"`
	MaxKeys     int    `json:"max_keys"`
	MaxLifetime int64  `json:"max_lifetime_seconds"`
}

// ownProjects returns the projects in which the caller may create keys.
func (c *call) ownProjects() ([]ownProject, error) {
	list, names := []ownProject{}, c.projectNames()
	by, err := c.creator()
	if by == nil || err != nil {
		return list, err
	}
	for _, label := range by.projects(c.key) {
		p, err := names.find(label)
		if err != nil {
			return nil, err
		}
		if p != nil && by.allowed(p) {
			list = append(list, ownProject{p.Label, p.Keys.MaxKeys, p.Keys.MaxLifetime})
		}
	}
	return list, nil
}

// forbidden returns a 403.
func forbidden(message string) error {
	return &plugins.Error{Status: http.StatusForbidden, Message: message}
}

// creatorIn returns the caller and a project in which the caller may create keys. The label may be "" if
// the caller has one project.
func (c *call) creatorIn(label string) (*creator, *control.Project, error) {
	by, err := c.creator()
	switch {
	case err != nil:
		return nil, nil, err
	case by == nil && c.key.Created() != nil && c.key.Created().Creator != nil:
		return nil, nil, forbidden("a key that somebody created as their own creates no others: use the key or the login that created it")
	case by == nil:
		return nil, nil, forbidden("keys of one's own are created by members of a project and by its keys, and this is neither: ask an administrator for a key in a project")
	}
	if mine := by.projects(c.key); label == "" && len(mine) == 1 {
		label = mine[0]
	} else if label == "" {
		return nil, nil, bad("project: name one of your projects: %s", strings.Join(mine, ", "))
	}
	p, err := c.projectNames().find(label)
	if err != nil {
		return nil, nil, err
	}
	if p == nil || !slices.Contains(by.projects(c.key), label) || !by.allowed(p) {
		return nil, nil, forbidden("you may not create keys in the project " + label + ": an administrator allows it with `weir project keys`")
	}
	return by, p, nil
}

func createOwnKey(c *call) (any, error) {
	body := struct {
		Name      string             `json:"name"`
		Project   string             `json:"project"`
		Scopes    []string           `json:"scopes"`
		Models    []string           `json:"models"`
		Providers []string           `json:"providers"`
		ExpiresAt *storage.Timestamp `json:"expires_at"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	by, p, err := c.creatorIn(body.Project)
	if err != nil {
		return nil, err
	}
	s := control.Settings{Name: body.Name, Project: p.Label, Scopes: body.Scopes, Models: body.Models, Providers: body.Providers, ExpiresAt: body.ExpiresAt}
	if s.Scopes == nil {
		s.Scopes = slices.DeleteFunc(slices.Clone(agentScopes), func(scope string) bool { return !c.key.Allows(scope) })
	}
	now := storage.Millis(time.Now())
	latest := now + storage.Timestamp(p.Keys.MaxLifetime*1000)
	if own := c.key.Created(); own != nil && own.ExpiresAt != nil {
		latest = min(latest, *own.ExpiresAt)
	}
	switch {
	case s.ExpiresAt == nil:
		s.ExpiresAt = &latest
	case *s.ExpiresAt <= now || *s.ExpiresAt > latest:
		return nil, bad("expires_at: a time up to %s is expected, when your own access or the project's max_lifetime_seconds ends", latest)
	}
	if err := c.key.Grant(&s, by.member); err != nil {
		return nil, bad("%v", err)
	}
	if by.member != nil {
		s.Owner = by.member.Email
	}
	if err := checkSettings(&s); err != nil {
		return nil, err
	}
	k, secret, err := c.org.CreateOwnKey(c.ctx, by.Creator, s, p.Keys.MaxKeys)
	if tooMany, ok := errors.AsType[control.TooManyKeysError](err); ok {
		err = conflict(tooMany.Error())
	}
	return withSecret{k, secret, c.keyWarnings(&s, []string{p.Label})}, err
}

func listOwnKeys(c *call) (any, error) {
	items := []listedKey{} // [] for none
	by, ok := c.key.Creator()
	if !ok {
		return page{Items: items}, nil
	}
	all, err := c.org.OwnKeys(c.ctx, by.ID)
	for _, k := range all {
		items = append(items, listedKey{k.Object, k.UsedAt})
	}
	return page{Items: items}, err
}

// ownKeyInPath returns the key in the path, or a 404 if the caller has not created it.
func (c *call) ownKeyInPath() (*control.Key, error) {
	k, err := control.Get[control.Key](c.ctx, c.org, c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if by, ok := c.key.Creator(); !ok || k.Object.Creator == nil || k.Object.Creator.ID != by.ID {
		return nil, control.NotFoundError(control.KindKey)
	}
	return k.Object, nil
}

// rotateOwnKey gives a new secret to the caller's key, or to a key that the caller has created.
func rotateOwnKey(c *call) (any, error) {
	k := c.key.Created()
	if k == nil || k.ID != c.r.PathValue("id") {
		var err error
		if k, err = c.ownKeyInPath(); err != nil {
			return nil, err
		}
	}
	if _, _, err := c.creatorIn(k.Project); err != nil {
		return nil, err
	}
	return c.rotate(k.ID)
}

func deleteOwnKey(c *call) (any, error) {
	k, err := c.ownKeyInPath()
	if err != nil {
		return nil, err
	}
	return nil, control.Delete[control.Key](c.ctx, c.org, k.ID)
}
