package control

import (
	"context"
	"slices"

	"github.com/weirhq/weir/storage"
)

// AccountPrefix begins the ids of service accounts, and of no other object.
const AccountPrefix = "svc_"

// Project groups keys. Its models and its limits apply to all of its keys.
type Project struct {
	// ID begins with `proj_`.
	ID string `json:"id"`
	// Org is the organisation that has the project.
	Org string `json:"organization"`
	// Label is the project's first name. It is in keys and in the records of calls, and
	// stays when the name changes, so that the records of a project stay together.
	Label string `json:"label"`
	// Name tells people which project it is.
	Name string `json:"name"`
	// CreatedAt is when the project was created.
	CreatedAt storage.Timestamp `json:"created_at"`
	// ArchivedAt is when the project ended, nil while it is in use. Keys of an archived
	// project open nothing.
	ArchivedAt *storage.Timestamp `json:"archived_at"`
	// Models are the models that the keys of the project may call, nil for all.
	Models *ModelPermissions `json:"models"`
	// Keys say who creates keys of their own in the project, nil for nobody.
	Keys *KeyPermissions `json:"keys,omitempty"`
}

// ModelPermissions allow some models, or refuse some.
type ModelPermissions struct {
	// Mode is AllowList or DenyList.
	Mode string `json:"mode"`
	// IDs are the models, as Settings.Models has them.
	IDs []string `json:"model_ids"`
}

// The modes of model permissions.
const (
	AllowList = "allow_list"
	DenyList  = "deny_list"
)

func (p *Project) object() Object {
	o := Object{ID: p.ID, Kind: KindProject, Name: p.Label}
	if p.ArchivedAt == nil {
		o.Lists = []List{InUse}
	}
	return o
}

// ServiceAccount owns keys that no person owns.
type ServiceAccount struct {
	// ID begins with `svc_`.
	ID string `json:"id"`
	// Org is the organisation that has the account.
	Org string `json:"organization"`
	// Project is the label of the account's project.
	Project string `json:"project"`
	// Name tells people which account it is.
	Name string `json:"name"`
	// CreatedAt is when the account was created.
	CreatedAt storage.Timestamp `json:"created_at"`
}

func (a *ServiceAccount) object() Object {
	return Object{ID: a.ID, Kind: KindServiceAccount, Lists: []List{InProject(a.Project)}}
}

func (o *Organisation) newProject(name string) *Project {
	return &Project{ID: newID("proj_"), Org: o.Name, Label: name, Name: name, CreatedAt: now()}
}

// ProjectCreated is the event that makes a project of a name.
func (o *Organisation) ProjectCreated(name string) (Event, error) {
	return created(o, o.newProject(name))
}

// CreateProject makes a project. The error may be ErrTaken: a project has, or began with, the
// name.
func (o *Organisation) CreateProject(ctx context.Context, name string) (*Project, error) {
	p := o.newProject(name)
	return p, create(ctx, o, p)
}

// UpdateProject changes a project that is not archived.
func (o *Organisation) UpdateProject(ctx context.Context, id string, set func(*Project) error) (*Project, error) {
	return update(ctx, o, id, Updated, func(p *Project) error {
		if p.ArchivedAt != nil {
			return ErrArchived
		}
		return set(p)
	})
}

// ArchiveProject ends a project: its keys open nothing any more.
func (o *Organisation) ArchiveProject(ctx context.Context, id string) (*Project, error) {
	return update(ctx, o, id, Archived, func(p *Project) error {
		if p.ArchivedAt != nil {
			return ErrArchived
		}
		p.ArchivedAt = new(now())
		return nil
	})
}

// CreateServiceAccount makes a service account in a project, and its first key if key is not
// nil. The error may be ErrArchived.
func (o *Organisation) CreateServiceAccount(ctx context.Context, project, name string, key *Settings) (a *ServiceAccount, k *Key, secret string, err error) {
	a = &ServiceAccount{ID: newID(AccountPrefix), Org: o.Name, Project: project, Name: name, CreatedAt: now()}
	err = o.retry(ctx, func() error {
		b, err := o.bonds(ctx, "", &Settings{Project: project})
		if err != nil {
			return err
		}
		e, err := created(o, a)
		if err != nil {
			return err
		}
		if key == nil {
			return b.commit(ctx, o, e)
		}
		b.creation = append(b.creation, e)
		settings := *key
		settings.OwnerID, settings.Project = a.ID, project
		k, secret = o.newKey(settings)
		if e, err = created(o, k); err != nil {
			return err
		}
		return b.commit(ctx, o, e)
	})
	return a, k, secret, err
}

// DeleteOwner ends a service account, a member or a key, with all keys that it owns, and those that
// these own.
func DeleteOwner[T any, V value[T]](ctx context.Context, o *Organisation, id string) error {
	err := o.retry(ctx, func() error {
		object, err := o.get(ctx, kindOf[T, V](), id)
		if err != nil {
			return err
		}
		ended, err := o.endKeyEvents(ctx, id)
		if err != nil {
			return err
		}
		return o.Log.Commit(ctx, o.Name, append(ended, o.event(Deleted, &object, nil)))
	})
	if err != nil {
		return err
	}
	// A key may have been made meanwhile. No further key follows: a deleted owner gets no new key.
	return o.retry(ctx, func() error {
		ended, err := o.endKeyEvents(ctx, id)
		if err != nil || len(ended) == 0 {
			return err
		}
		return o.Log.Commit(ctx, o.Name, ended)
	})
}

// endKeyEvents are the events that end all keys of an owner, each key once: what an older version kept may
// have keys that own each other. A key ends before its owner.
func (o *Organisation) endKeyEvents(ctx context.Context, owner string) (events []Event, err error) {
	owners, seen := []string{owner}, map[string]bool{owner: true}
	for i := 0; i < len(owners); i++ {
		list, err := o.Log.List(ctx, o.Name, KindKey, Page{List: OwnedBy(owners[i])})
		if err != nil {
			return nil, err
		}
		for j := range list {
			if id := list[j].ID; !seen[id] {
				seen[id], owners = true, append(owners, id)
				events = append(events, o.event(Deleted, &list[j], nil))
			}
		}
	}
	slices.Reverse(events)
	return events, nil
}

// Allow reports whether the keys of the project may call a model, by whichever of its names.
// accepts says whether a list has a name.
func (p *Project) Allow(accepts func(list []string) bool) bool {
	return p.Models == nil || accepts(p.Models.IDs) == (p.Models.Mode == AllowList)
}
