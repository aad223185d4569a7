package llmcontrol

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/access"
	headers "github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/credits"
)

const (
	// maxText bounds names and values, in bytes; maxList how many models, providers and
	// properties a key has.
	maxText = 256
	maxList = 100
	// defaultPage is the size of a page unless the caller sets it, up to maxPage. Pages of rate
	// limits have up to maxRatePage, which OpenAI's provider for Terraform asks for
	// (https://github.com/openai/terraform-provider-openai).
	defaultPage = 50
	maxPage     = 200
	maxRatePage = 1000
	// defaultOverlap is how long the old secret opens the key beside the new one unless
	// the caller says, maxOverlap at most.
	defaultOverlap = 24 * time.Hour
	maxOverlap     = 90 * 24 * time.Hour
)

// withSecret is a key with the secret that it has just got.
type withSecret struct {
	*control.Key
	// Secret is answered once, and kept nowhere.
	Secret string `json:"secret"`
	// Warnings say what may be wrong with the key.
	Warnings []string `json:"warnings,omitempty"`
}

// changedKey is a key whose settings have changed.
type changedKey struct {
	*control.Key
	Warnings []string `json:"warnings,omitempty"`
}

func createKey(c *call) (any, error) {
	var s control.Settings
	if err := c.settings(&s); err != nil {
		return nil, err
	}
	before := c.projectLabels()
	k, secret, err := c.org.CreateKey(c.ctx, s)
	return withSecret{k, secret, c.keyWarnings(&k.Settings, before)}, err
}

// settings reads the body over what a key has.
func (c *call) settings(s *control.Settings) error {
	before, rules := s.Properties, s.Mask
	s.Properties, s.Mask = nil, nil // they are replaced as a whole
	if err := c.decode(s); err != nil {
		return err
	}
	if !gjson.GetBytes(c.body, "properties").Exists() {
		s.Properties = before
	}
	if !gjson.GetBytes(c.body, "mask").Exists() {
		s.Mask = rules
	}
	return checkSettings(s)
}

// checkSettings refuses settings that a key cannot have.
func checkSettings(s *control.Settings) error {
	texts := append([]string{s.Owner, s.Project, s.User}, slices.Concat(s.Models, s.Providers)...)
	for name, value := range s.Properties {
		switch {
		case name == "":
			return bad("properties: a name is empty")
		case redact.Credential(name):
			return bad("properties: %q is named like a credential, and would be in each record", name)
		case headers.SessionName(name) != "":
			return bad("properties: %q is for calls to say", name)
		}
		texts = append(texts, name, value)
	}
	err := access.CheckScopes(s.Scopes)
	switch {
	case s.Name == "" || len(s.Name) > maxText:
		return bad("name: a text of 1 to %d bytes is expected", maxText)
	case slices.ContainsFunc(texts, func(text string) bool { return len(text) > maxText }):
		return bad("a text has more than %d bytes", maxText)
	case slices.ContainsFunc(append(texts, s.Name), func(text string) bool { return strings.ContainsFunc(text, unicode.IsControl) }):
		return bad("a text has a control character, such as a line break")
	case len(s.Models) > maxList || len(s.Providers) > maxList || len(s.Properties) > maxList:
		return bad("models, providers and properties: at most %d each", maxList)
	case slices.Contains(s.Models, "") || slices.Contains(s.Providers, ""):
		return bad("models and providers: a name is empty")
	case slices.ContainsFunc(s.Trust, func(what string) bool {
		return what != control.TrustUser && what != control.TrustSession && what != control.TrustProperties
	}):
		return bad("trust: any of %s, %s and %s is expected", control.TrustUser, control.TrustSession, control.TrustProperties)
	case len(s.Mask) > maxList || slices.Contains(s.Mask, nil):
		return bad("mask: at most %d rules are expected, each an object", maxList)
	case len(s.Scopes) == 0:
		return bad("scopes: at least one is expected")
	case err != nil:
		return bad("scopes: %v", err)
	case slices.Contains(s.Scopes, access.ScopeAdmin) && (s.Project != "" || strings.HasPrefix(s.OwnerID, control.AccountPrefix)):
		return bad("scopes: a key with %s administers the whole organisation, and is in no project", access.ScopeAdmin)
	}
	if _, err := mask.New(s.Mask); err != nil {
		return bad("%v", err)
	}
	return nil
}

// page is a page of a list.
type page struct {
	Items any `json:"items"`
	// Next is what `after` or `before` is for the next page, null at the end.
	Next *string `json:"next"`
}

// query reads the query of the URL, which has no other names.
func (c *call) query(names ...string) (limit int, values []string, err error) {
	return queryOf(c.r.URL.Query(), maxPage, names...)
}

func queryOf(given url.Values, maxLimit int, names ...string) (limit int, values []string, err error) {
	for name := range given {
		if name != "limit" && !slices.Contains(names, name) {
			return 0, nil, bad("%s: there is no such option, only %s", name, strings.Join(append(names, "limit"), ", "))
		}
	}
	for _, name := range names {
		values = append(values, given.Get(name))
	}
	limit, err = countOf("limit", given.Get("limit"), maxLimit)
	return limit, values, err
}

// countOf reads how many of something are asked for: a page if the text is empty.
func countOf(name, text string, maximum int) (n int, err error) {
	if text == "" {
		return defaultPage, nil
	}
	if n, err = strconv.Atoi(text); err != nil || n < 1 || n > maximum {
		return 0, bad("%s: a number from 1 to %d is expected", name, maximum)
	}
	return n, nil
}

// listedKey is a key of a list.
type listedKey struct {
	*control.Key
	// LastUsedAt is when a call last had the key, to the minute; nil for never.
	LastUsedAt *storage.Timestamp `json:"last_used_at"`
}

func listKeys(c *call) (any, error) {
	limit, values, err := c.query("project", "after")
	if err != nil {
		return nil, err
	}
	in := control.Page{After: values[1], Limit: limit + 1}
	if values[0] != "" {
		in.List = control.InProject(values[0])
	}
	list, err := control.All[control.Key](c.ctx, c.org, in)
	if err != nil {
		return nil, err
	}
	p := page{}
	if len(list) > limit {
		list = list[:limit]
		p.Next = &list[limit-1].Object.ID
	}
	items := []listedKey{} // [] for none
	for _, k := range list {
		items = append(items, listedKey{k.Object, k.UsedAt})
	}
	p.Items = items
	return p, nil
}

func getKey(c *call) (any, error) {
	k, err := control.Get[control.Key](c.ctx, c.org, c.r.PathValue("id"))
	return listedKey{k.Object, k.UsedAt}, err
}

// updateKey leaves the fields that the body does not have as they are.
func updateKey(c *call) (any, error) {
	before := c.projectLabels()
	k, err := c.updateKey(c.r.PathValue("id"), c.settings)
	if err != nil {
		return nil, err
	}
	return changedKey{k, c.keyWarnings(&k.Settings, before)}, nil
}

// updateKey changes a key. It refuses the caller's own key: the key could end its own
// bounds.
func (c *call) updateKey(id string, set func(*control.Settings) error) (*control.Key, error) {
	if own := c.key.Created(); own != nil && own.ID == id {
		return nil, &plugins.Error{Status: http.StatusForbidden, Message: "a key does not change itself: use another key that administers"}
	}
	return c.org.UpdateKey(c.ctx, id, set)
}

func deleteKey(c *call) (any, error) {
	return nil, control.DeleteOwner[control.Key](c.ctx, c.org, c.r.PathValue("id"))
}

func rotateKey(c *call) (any, error) { return c.rotate(c.r.PathValue("id")) }

// rotate gives a key another secret.
func (c *call) rotate(id string) (any, error) {
	body := struct {
		// OverlapSeconds is how long the secrets that the key has still open it.
		OverlapSeconds *int64 `json:"overlap_seconds"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	overlap := defaultOverlap
	if n := body.OverlapSeconds; n != nil {
		if *n < 0 || *n > int64(maxOverlap/time.Second) {
			return nil, bad("overlap_seconds: a number from 0 to %d is expected", int64(maxOverlap/time.Second))
		}
		overlap = time.Duration(*n) * time.Second
	}
	k, secret, err := c.org.RotateKey(c.ctx, id, overlap)
	return withSecret{Key: k, Secret: secret}, err
}

// pagesRead is how many pages of events an answer looks through, so that one about few of many events
// ends. Next is the place that it reached.
const pagesRead = 20

func listEvents(c *call) (any, error) {
	limit, values, err := c.query("key", "before", "reads")
	if err != nil {
		return nil, err
	}
	object, before, reads := values[0], values[1], values[2]
	if reads != "" && reads != "true" && reads != "false" {
		return nil, bad("reads: true or false is expected, not %q", reads)
	}
	items := []control.Event{} // [] for none
	for range pagesRead {
		list, err := c.org.Log.Events(c.ctx, c.org.Name, object, before, maxPage)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			before = e.ID
			if reads != "" && e.IsRead() != (reads == "true") {
				continue
			}
			if len(items) == limit {
				return page{Items: items, Next: &items[limit-1].ID}, nil
			}
			items = append(items, e)
		}
		if len(list) < maxPage {
			return page{Items: items}, nil
		}
	}
	return page{Items: items, Next: &before}, nil
}

// own is what a caller may do.
type own struct {
	Organization string             `json:"organization"`
	ID           *string            `json:"id"` // null for keys of the configuration, and for tokens
	Name         *string            `json:"name"`
	Project      *string            `json:"project"`
	User         *string            `json:"user"` // null if calls name their user
	Scopes       []string           `json:"scopes"`
	Models       []string           `json:"models"`    // [] for all
	Providers    []string           `json:"providers"` // [] for all
	ExpiresAt    *storage.Timestamp `json:"expires_at"`
	// Credits are the organisation's credits, null if it pays for no call with credits.
	Credits *credits.Statement `json:"credits"`
	// Budgets are the budgets that count every call of the key.
	Budgets []budget `json:"budgets"`
	// KeyPermissions are the projects in which the caller may create keys of their own.
	KeyPermissions []ownProject `json:"key_permissions"`
}

func ownKey(c *call) (any, error) {
	o := own{Organization: c.key.Org(), User: optional(c.key.User()), Scopes: c.key.Allowed(), Models: []string{}, Providers: []string{}}
	if k := c.key.Created(); k != nil {
		o.ID, o.Name, o.ExpiresAt = &k.ID, &k.Name, k.ExpiresAt
		o.Models, o.Providers = append(o.Models, k.Models...), append(o.Providers, k.Providers...)
		if k.Project != "" {
			o.Project = &k.Project
		}
	}
	var err error
	if o.KeyPermissions, err = c.ownProjects(); err != nil {
		return nil, err
	}
	if o.Budgets, err = c.ownBudgets(); err != nil || !c.app.Money().HasCredits(o.Organization) {
		return o, err
	}
	balance, err := c.app.Money().Balance(c.ctx, o.Organization)
	if err != nil {
		return nil, err
	}
	statement := balance.Statement()
	o.Credits = &statement
	return o, nil
}
