package llmcontrol

import (
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// organizationPath begins the paths of OpenAI's administration API, whose answers and errors
// have OpenAI's shapes
// (https://platform.openai.com/docs/api-reference/administration).
const organizationPath = "/v1/organization/"

// openAI reports whether the endpoint answers in OpenAI's shapes.
func (e endpoint) openAI() bool { return strings.HasPrefix(e.path, organizationPath) }

// maxExpiry is the longest life that a caller may give a key: 100 years.
const maxExpiry = 100 * 365 * 24 * time.Hour

// openAIPage is a page of OpenAI's lists.
type openAIPage struct {
	Object string `json:"object"`
	Data   []any  `json:"data"`
	// FirstID and LastID are null if the page is empty.
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// adminKey is how OpenAI writes a key that administers. Times are Unix seconds.
type adminKey struct {
	Object        string     `json:"object"`
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	RedactedValue string     `json:"redacted_value"`
	CreatedAt     int64      `json:"created_at"`
	ExpiresAt     *int64     `json:"expires_at"`   // null for never
	LastUsedAt    *int64     `json:"last_used_at"` // null for never
	Owner         adminOwner `json:"owner"`
	// Value is the secret, which only the answer that creates the key has.
	Value string `json:"value,omitempty"`
}

// adminOwner answers for a key.
type adminOwner struct {
	Object string `json:"object"`
	Type   string `json:"type"`
	Role   string `json:"role"`
	Name   string `json:"name,omitempty"`
}

// seconds is a time in Unix seconds, nil for nil.
func seconds(at *storage.Timestamp) *int64 {
	if at == nil {
		return nil
	}
	s := int64(*at) / 1000
	return &s
}

func describeAdminKey(listed control.Listed[control.Key]) adminKey {
	k := listed.Object
	return adminKey{
		Object: "organization.admin_api_key", ID: k.ID, Name: k.Name,
		RedactedValue: redacted(k),
		CreatedAt:     *seconds(&k.CreatedAt), ExpiresAt: seconds(k.ExpiresAt), LastUsedAt: seconds(listed.UsedAt),
		Owner: adminOwner{Object: "organization.user", Type: "user", Role: "owner", Name: k.Owner},
	}
}

// newKey creates a key that ends after life seconds, nil for never.
func (c *call) newKey(s control.Settings, life *int64) (k *control.Key, secret string, err error) {
	if s.ExpiresAt, err = expiry(life); err != nil {
		return nil, "", err
	}
	if err := checkSettings(&s); err != nil {
		return nil, "", err
	}
	return c.org.CreateKey(c.ctx, s)
}

func createAdminKey(c *call) (any, error) {
	body := struct {
		Name             string `json:"name"`
		ExpiresInSeconds *int64 `json:"expires_in_seconds"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	k, secret, err := c.newKey(control.Settings{Name: body.Name, Scopes: []string{access.ScopeAdmin}}, body.ExpiresInSeconds)
	if err != nil {
		return nil, err
	}
	described := describeAdminKey(control.Listed[control.Key]{Object: k})
	described.Value = secret
	return described, nil
}

func listAdminKeys(c *call) (any, error) {
	limit, values, err := c.query("after", "order")
	if err != nil {
		return nil, err
	}
	after, order := values[0], values[1]
	if order != "" && order != "asc" && order != "desc" {
		return nil, bad("order: asc or desc is expected")
	}
	in := control.Page{List: control.OfScope(access.ScopeAdmin), After: after, NewestFirst: order == "desc"}
	return listOf(c, in, limit, func(k control.Listed[control.Key]) (string, any, error) {
		return k.Object.ID, describeAdminKey(k), nil
	})
}

// adminKey returns the key that the path names, if it administers.
func (c *call) adminKey() (control.Listed[control.Key], error) {
	k, err := control.Get[control.Key](c.ctx, c.org, c.r.PathValue("id"))
	if err == nil && !slices.Contains(k.Object.Scopes, access.ScopeAdmin) {
		err = control.NotFoundError(control.KindKey)
	}
	return k, err
}

func getAdminKey(c *call) (any, error) {
	k, err := c.adminKey()
	return described(k, err, describeAdminKey)
}

func deleteAdminKey(c *call) (any, error) {
	k, err := c.adminKey()
	if err != nil {
		return nil, err
	}
	return deletion{"organization.admin_api_key.deleted", k.Object.ID, true}, control.Delete[control.Key](c.ctx, c.org, k.Object.ID)
}
