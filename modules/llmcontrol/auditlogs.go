package llmcontrol

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage/control"
)

// auditTypes are OpenAI's types of events, by the action in Weir. An action without a type, such as
// budget.reached, is only in /v1/audit.
var auditTypes = map[string]string{
	"project.created": "project.created", "project.updated": "project.updated", "project.archived": "project.archived",
	"service_account.created": "service_account.created", "service_account.updated": "service_account.updated", "service_account.deleted": "service_account.deleted",
	"key.created": "api_key.created", "key.updated": "api_key.updated", "key.rotated": "api_key.updated", "key.deleted": "api_key.deleted",
	"member.created": "user.added", "member.updated": "user.updated", "member.joined": "invite.accepted", "member.deleted": "user.deleted",
	"rule.created": "rate_limit.updated", "rule.updated": "rate_limit.updated", "rule.deleted": "rate_limit.deleted",
}

// auditFilter selects events.
type auditFilter struct {
	types, actors, objects, projects []string // an empty list selects all; projects are labels
	from, to                         int64    // Unix time in seconds, both included; to is 0 for no end
}

// parseAuditFilter parses the options of a query that select events, and returns the other options.
func parseAuditFilter(c *call) (f auditFilter, others url.Values, err error) {
	others = url.Values{}
	for name, values := range c.r.URL.Query() {
		known, err := f.set(c, name, values)
		if err != nil {
			return f, nil, err
		}
		if !known {
			others[name] = values
		}
	}
	return f, others, nil
}

// set sets the option of a name. It reports whether the option selects events.
func (f *auditFilter) set(c *call, name string, values []string) (known bool, err error) {
	seconds := func(add int64) (int64, error) {
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return 0, bad("%s: a number of seconds is expected", name)
		}
		return n + add, nil
	}
	switch strings.TrimSuffix(name, "[]") {
	case "event_types":
		f.types = values
	case "actor_ids":
		f.actors = values
	case "resource_ids":
		f.objects = values
	case "project_ids":
		f.projects, err = c.labels(values)
	case "effective_at[gt]":
		f.from, err = seconds(1)
	case "effective_at[gte]":
		f.from, err = seconds(0)
	case "effective_at[lt]":
		f.to, err = seconds(-1)
	case "effective_at[lte]":
		f.to, err = seconds(0)
	default:
		return false, nil
	}
	return true, err
}

// projectOf returns the label of the project that an event is about, "" if it is about none.
func projectOf(e *control.Event) string {
	value := e.Subject().Value
	if strings.HasPrefix(e.Action, string(control.KindProject)+".") {
		return gjson.GetBytes(value, "label").Str
	}
	return gjson.GetBytes(value, "project").Str
}

// matches reports whether the filter selects an event.
func (f *auditFilter) matches(e *control.Event) bool {
	selects := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	at, name := secondsOf(e), auditTypes[e.Action]
	return name != "" && selects(f.types, name) && selects(f.actors, e.Actor.Key) && selects(f.objects, e.Object) && selects(f.projects, projectOf(e)) &&
		at >= f.from && (f.to == 0 || at <= f.to)
}

// secondsOf returns the time of an event as Unix time in seconds.
func secondsOf(e *control.Event) int64 { return int64(e.At) / 1000 }

func listAuditLogs(c *call) (any, error) {
	f, others, err := parseAuditFilter(c)
	if err != nil {
		return nil, err
	}
	limit, values, err := queryOf(others, maxPage, "after")
	if err != nil {
		return nil, err
	}
	object := ""
	if len(f.objects) == 1 {
		object = f.objects[0]
	}
	page, projects := openAIPage{Object: "list", Data: []any{}}, projectNames{ctx: c.ctx, org: c.org}
	before := values[0]
	for range pagesRead {
		events, err := c.org.Log.Events(c.ctx, c.org.Name, object, before, maxPage)
		if err != nil {
			return nil, err
		}
		for i := range events {
			e := &events[i]
			before = e.ID
			if secondsOf(e) < f.from { // so are all that follow
				return page, nil
			}
			if !f.matches(e) {
				continue
			}
			if len(page.Data) == limit {
				page.HasMore = true
				return page, nil
			}
			described, err := describeEvent(e, &projects)
			if err != nil {
				return nil, err
			}
			page.add(e.ID, described)
		}
		if len(events) < maxPage {
			return page, nil
		}
	}
	page.HasMore, page.LastID = true, &before // clients continue after the last event that was read
	return page, nil
}

// describeEvent returns an event as OpenAI has it: the field with the name of the event's type has the object.
func describeEvent(e *control.Event, projects *projectNames) (map[string]any, error) {
	value := gjson.ParseBytes(e.Subject().Value)
	name, data := auditTypes[e.Action], map[string]any{}
	object := map[string]any{"id": e.Object}
	switch name {
	case "invite.accepted":
		object["id"] = inviteID(e.Object)
	case "project.created":
		data["name"], data["title"] = value.Get("label").Str, value.Get("name").Str
	case "project.updated":
		data["title"] = value.Get("name").Str
	case "service_account.created", "service_account.updated":
		data["role"] = "member"
	case "user.added", "user.updated":
		data["role"] = value.Get("role").Str
	case "api_key.created", "api_key.updated":
		data["scopes"] = value.Get("scopes").Value()
	}
	if len(data) > 0 {
		field := "data"
		if strings.HasSuffix(name, ".updated") {
			field = "changes_requested"
		}
		object[field] = data
	}
	described := map[string]any{
		"id": e.ID, "type": name, "effective_at": secondsOf(e), name: object,
		"actor": map[string]any{"type": "api_key", "api_key": map[string]any{"id": e.Actor.Key}},
	}
	if strings.HasPrefix(e.Actor.Key, control.MemberPrefix) {
		described["actor"] = map[string]any{"type": "session", "session": map[string]any{"user": map[string]any{"id": e.Actor.Key}, "ip_address": e.Actor.Address}}
	}
	p, err := projects.find(projectOf(e))
	if p != nil {
		described["project"] = map[string]any{"id": p.ID, "name": p.Name}
	}
	return described, err
}
