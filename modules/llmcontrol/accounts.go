package llmcontrol

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// serviceAccount is how OpenAI writes a service account.
type serviceAccount struct {
	Object    string `json:"object"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	Role      string `json:"role"`
	CreatedAt int64  `json:"created_at"`
}

func describeAccount(a *control.ServiceAccount) serviceAccount {
	return serviceAccount{"organization.project.service_account", a.ID, a.Name, "member", *seconds(&a.CreatedAt)}
}

// accountKey is how OpenAI writes a key that a service account has just got.
type accountKey struct {
	Object    string `json:"object"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	CreatedAt int64  `json:"created_at"`
	ExpiresAt *int64 `json:"expires_at"` // null for never
	// Value is answered once, and kept nowhere.
	Value string `json:"value"`
}

func describeAccountKey(k *control.Key, secret string) *accountKey {
	return &accountKey{"organization.project.service_account.api_key", k.ID, k.Name, *seconds(&k.CreatedAt), seconds(k.ExpiresAt), secret}
}

// accountWithKey is a service account with its first key, nil for none.
type accountWithKey struct {
	serviceAccount
	Key *accountKey `json:"api_key"`
}

func createAccount(c *call) (any, error) {
	body := struct {
		Name             string `json:"name"`
		WithoutKey       *bool  `json:"create_service_account_only"`
		ExpiresInSeconds *int64 `json:"expires_in_seconds"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if err := checkName(body.Name); err != nil {
		return nil, err
	}
	ends, err := expiry(body.ExpiresInSeconds)
	if err != nil {
		return nil, err
	}
	settings := &control.Settings{Name: body.Name, Scopes: agentScopes, ExpiresAt: ends}
	if body.WithoutKey != nil && *body.WithoutKey {
		settings = nil
	}
	a, k, secret, err := c.org.CreateServiceAccount(c.ctx, c.project.Label, body.Name, settings)
	if err != nil {
		return nil, err
	}
	answer := accountWithKey{serviceAccount: describeAccount(a)}
	if k != nil {
		answer.Key = describeAccountKey(k, secret)
	}
	return answer, nil
}

func listAccounts(c *call) (any, error) {
	limit, values, err := c.query("after")
	if err != nil {
		return nil, err
	}
	in := control.Page{List: control.InProject(c.project.Label), After: values[0]}
	return listOf(c, in, limit, func(a control.Listed[control.ServiceAccount]) (string, any, error) {
		return a.Object.ID, describeAccount(a.Object), nil
	})
}

// account returns the service account that the path names, in the project that it names.
func (c *call) account() (*control.ServiceAccount, error) {
	a, err := control.Get[control.ServiceAccount](c.ctx, c.org, c.r.PathValue("id"))
	if err == nil && a.Object.Project != c.project.Label {
		err = control.NotFoundError(control.KindServiceAccount)
	}
	return a.Object, err
}

func getAccount(c *call) (any, error) {
	a, err := c.account()
	return described(a, err, describeAccount)
}

func updateAccount(c *call) (any, error) {
	body := struct {
		Name *string `json:"name"`
		Role *string `json:"role"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if body.Role != nil && *body.Role != "member" {
		return nil, bad("role: service accounts are members; a key that administers is made at %sadmin_api_keys", organizationPath)
	}
	if body.Name != nil {
		if err := checkName(*body.Name); err != nil {
			return nil, err
		}
	}
	a, err := c.account()
	if err != nil {
		return nil, err
	}
	if body.Name == nil {
		return describeAccount(a), nil
	}
	a, err = control.Update(c.ctx, c.org, a.ID, func(a *control.ServiceAccount) error {
		a.Name = *body.Name
		return nil
	})
	return described(a, err, describeAccount)
}

func deleteAccount(c *call) (any, error) {
	a, err := c.account()
	if err != nil {
		return nil, err
	}
	return deletion{"organization.project.service_account.deleted", a.ID, true}, control.DeleteOwner[control.ServiceAccount](c.ctx, c.org, a.ID)
}

func createAccountKey(c *call) (any, error) {
	body := struct {
		Name             string   `json:"name"`
		Scopes           []string `json:"scopes"`
		ExpiresInSeconds *int64   `json:"expires_in_seconds"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	a, err := c.account()
	if err != nil {
		return nil, err
	}
	s := control.Settings{Name: cmp.Or(body.Name, a.Name), OwnerID: a.ID, Scopes: body.Scopes}
	if s.Scopes == nil {
		s.Scopes = agentScopes
	}
	k, secret, err := c.newKey(s, body.ExpiresInSeconds)
	if err != nil {
		return nil, err
	}
	return describeAccountKey(k, secret), nil
}

// projectKey is how OpenAI writes a key of a project.
type projectKey struct {
	Object        string   `json:"object"`
	ID            string   `json:"id"`
	Name          string   `json:"name"`
	RedactedValue string   `json:"redacted_value"`
	CreatedAt     int64    `json:"created_at"`
	LastUsedAt    *int64   `json:"last_used_at"` // null for never
	ExpiresAt     *int64   `json:"expires_at"`   // null for never
	Owner         keyOwner `json:"owner"`
	Access        string   `json:"owner_project_access"`
}

// keyOwner is who owns a key. It has no field if nobody does.
type keyOwner struct {
	Type           string `json:"type,omitempty"`
	ServiceAccount *owner `json:"service_account,omitempty"`
	User           *owner `json:"user,omitempty"`
}

type owner struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Email     *string `json:"email,omitempty"` // of a member
	Role      string  `json:"role"`
	CreatedAt int64   `json:"created_at"`
}

// redacted shows which secret a key has.
func redacted(k *control.Key) string { return "weir_****" + k.Secrets[len(k.Secrets)-1].Last4 }

func (o *owners) describe(k *control.Key, usedAt *storage.Timestamp) (projectKey, error) {
	of, err := o.find(k.OwnerID)
	return projectKey{
		Object: "organization.project.api_key", ID: k.ID, Name: k.Name, RedactedValue: redacted(k),
		CreatedAt: *seconds(&k.CreatedAt), LastUsedAt: seconds(usedAt), ExpiresAt: seconds(k.ExpiresAt),
		Owner: of, Access: "active",
	}, err
}

// owners finds the owners of keys.
type owners struct {
	ctx    context.Context
	org    *control.Organisation
	cached map[string]keyOwner
}

func (c *call) owners() *owners { return &owners{c.ctx, c.org, make(map[string]keyOwner)} }

func (o *owners) find(id string) (of keyOwner, err error) {
	of, known := o.cached[id]
	if id == "" || known {
		return of, nil
	}
	if strings.HasPrefix(id, control.AccountPrefix) {
		var a control.Listed[control.ServiceAccount]
		if a, err = control.Get[control.ServiceAccount](o.ctx, o.org, id); err == nil {
			of = keyOwner{Type: "service_account", ServiceAccount: &owner{ID: id, Name: a.Object.Name, Role: "member", CreatedAt: *seconds(&a.Object.CreatedAt)}}
		}
	} else {
		var m control.Listed[control.Member]
		if m, err = control.Get[control.Member](o.ctx, o.org, id); err == nil {
			of = keyOwner{Type: "user", User: &owner{ID: id, Name: m.Object.Name, Email: &m.Object.Email, Role: m.Object.Role, CreatedAt: *seconds(&m.Object.CreatedAt)}}
		}
	}
	if err != nil && !errors.Is(err, control.ErrNotFound) { // the owner may have ended meanwhile
		return of, err
	}
	o.cached[id] = of
	return of, nil
}

func listProjectKeys(c *call) (any, error) {
	limit, values, err := c.query("after", "owner_project_access")
	if err != nil {
		return nil, err
	}
	switch values[1] {
	case "", "active", "any":
	case "inactive": // owners of keys are members of the project
		return openAIPage{Object: "list", Data: []any{}}, nil
	default:
		return nil, bad("owner_project_access: active, inactive or any is expected")
	}
	in, owners := control.Page{List: control.InProject(c.project.Label), After: values[0]}, c.owners()
	return listOf(c, in, limit, func(k control.Listed[control.Key]) (string, any, error) {
		described, err := owners.describe(k.Object, k.UsedAt)
		return k.Object.ID, described, err
	})
}

// projectKey returns the key that the path names, in the project that it names.
func (c *call) projectKey() (control.Listed[control.Key], error) {
	k, err := control.Get[control.Key](c.ctx, c.org, c.r.PathValue("id"))
	if err == nil && k.Object.Project != c.project.Label {
		err = control.NotFoundError(control.KindKey)
	}
	return k, err
}

func getProjectKey(c *call) (any, error) {
	k, err := c.projectKey()
	if err != nil {
		return nil, err
	}
	return c.owners().describe(k.Object, k.UsedAt)
}

func updateProjectKey(c *call) (any, error) {
	body := struct {
		Scopes           []string `json:"scopes"`
		ExpiresInSeconds *int64   `json:"expires_in_seconds"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	ends, err := expiry(body.ExpiresInSeconds)
	if err != nil {
		return nil, err
	}
	k, err := c.projectKey()
	if err != nil {
		return nil, err
	}
	changed, err := c.updateKey(k.Object.ID, func(s *control.Settings) error {
		if body.Scopes != nil {
			s.Scopes = body.Scopes
		}
		if ends != nil {
			s.ExpiresAt = ends
		}
		return checkSettings(s)
	})
	if err != nil {
		return nil, err
	}
	return c.owners().describe(changed, k.UsedAt)
}

func deleteProjectKey(c *call) (any, error) {
	k, err := c.projectKey()
	if err != nil {
		return nil, err
	}
	return deletion{"organization.project.api_key.deleted", k.Object.ID, true}, control.DeleteOwner[control.Key](c.ctx, c.org, k.Object.ID)
}
