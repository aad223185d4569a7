package llmquery

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/openapi"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// common is the part of the description that is not generated from the routes, the schema of
// records and the filters.
//
//go:embed openapi.json
var common []byte

var description *openapi.Document

func init() { description = openapi.New(common, describe) } // not above: a route serves it

func serveOpenAPI(c *call) error {
	description.ServeHTTP(c.w, c.r)
	return nil
}

// about is what the description says of an endpoint. Schemas are named.
type about struct {
	id, tag, summary, text string
	// body is the schema of the body, "" for none, and example such a body.
	body, example string
	// status is the status of success, 0 for 200. answer is the response, nil for data of null.
	status int
	answer openapi.Object
	// fails are further statuses. Those that come with a scope or a body are not named.
	fails []string
}

func describe() (openapi.Operations, openapi.Object) {
	operations := make(openapi.Operations)
	for path, methods := range endpoints {
		operations[path] = make(map[string]*openapi.Operation)
		for method, e := range methods {
			operations[path][method] = e.operation(path)
		}
	}
	return operations, schemas()
}

// failures are the components of responses, by their status.
var failures = map[string]string{
	"304": "NotModified", "400": "BadRequest", "401": "Unauthorized", "403": "Forbidden", "404": "NotFound", "409": "Changed", "413": "TooLarge",
	"429": "TooMany", "500": "Failed", "503": "Busy", "504": "Timeout",
}

func (e endpoint) operation(path string) *openapi.Operation {
	a := e.about
	o := &openapi.Operation{
		ID: a.id, Tags: []string{a.tag}, Summary: a.summary, Description: a.text, Parameters: parameters(path),
		Security: []any{}, Responses: make(map[string]openapi.Object),
	}
	fails := a.fails
	if e.scope != scopeNone {
		o.Security = []any{openapi.Object{"key": []string{e.scope}}}
		fails = append([]string{"401", "403", "429"}, fails...)
	}
	if a.body != "" {
		content := openapi.Object{"schema": schema(a.body)}
		if a.example != "" {
			content["example"] = json.RawMessage(a.example)
		}
		o.Body = openapi.Object{"required": true, "content": openapi.Object{"application/json": content}}
		fails = append([]string{"400", "413"}, fails...)
	}
	for _, status := range fails {
		o.Responses[status] = openapi.Ref("responses", failures[status])
	}
	status, answer := http.StatusOK, data(openapi.Object{"type": "null"})
	if a.status != 0 {
		status = a.status
	}
	if a.answer != nil {
		answer = a.answer
	}
	o.Responses[strconv.Itoa(status)] = answer
	return o
}

// parameters returns the parameters of a path and of its query.
func parameters(path string) (refs []openapi.Object) {
	switch {
	case strings.HasPrefix(path, "/v1/request/{id}"):
		refs = append(refs, openapi.Ref("parameters", "RequestID"))
		if strings.HasSuffix(path, "{name}") {
			refs = append(refs, openapi.Ref("parameters", "ScoreName"))
		}
	case strings.Contains(path, "{id}"):
		refs = append(refs, openapi.Ref("parameters", "SessionID"))
	case strings.Contains(path, "{name}"):
		refs = append(refs, openapi.Ref("parameters", "ViewName"))
	case path == "/v1/request/tail":
		refs = append(refs, openapi.Ref("parameters", "Filter"))
	}
	return refs
}

// The responses.

func schema(name string) openapi.Object { return openapi.Ref("schemas", name) }

func list(name string) openapi.Object {
	return openapi.Object{"type": "array", "items": schema(name)}
}

func answers(contentType string, schema openapi.Object) openapi.Object {
	return openapi.Object{"description": "The answer.", "content": openapi.Content(contentType, schema)}
}

// data answers the envelope.
func data(of openapi.Object) openapi.Object {
	return answers("application/json", openapi.Object{
		"type": "object", "required": []string{"data", "error"},
		"properties": openapi.Object{"data": of, "error": openapi.Object{"type": "null"}},
	})
}

// page answers the envelope with the cursor of the next page.
func page(of openapi.Object) openapi.Object {
	return answers("application/json", openapi.Object{
		"type": "object", "required": []string{"data", "error", "next"},
		"properties": openapi.Object{"data": of, "error": openapi.Object{"type": "null"}, "next": schema("Next")},
	})
}

// warned says that an answer may come with warnings about the filter.
func warned(answer openapi.Object) openapi.Object {
	answer["headers"] = openapi.Object{"Service-Warnings": openapi.Ref("headers", "Warnings")}
	return answer
}

// exported answers a file.
var exported = openapi.Object{
	"description": "The answer.",
	"headers":     openapi.Object{"Content-Disposition": openapi.Object{"description": "The name of the file.", "schema": openapi.Object{"type": "string"}}},
	"content": openapi.Object{
		"application/x-ndjson": openapi.Object{"schema": schema("Request")},
		"text/csv":             openapi.Object{"schema": openapi.Object{"type": "string"}},
	},
}

// The schemas that storage knows.

func schemas() openapi.Object {
	request, legacy := []storage.Group{storage.RequestResponse}, []storage.Group{storage.RequestGroup, storage.ResponseGroup, storage.FeedbackGroup}
	all := openapi.Object{
		"Request": requestSchema(), "RequestSort": sortSchema(),
		"RequestFilter": filterSchema("RequestFilter", "`\"all\"`, a leaf of one group, one field and one operator, or a branch. A leaf of another group of the language empties the answer, and the header `Service-Warnings` says so.", request...),
		"LegacyRequestFilter": filterSchema("LegacyRequestFilter", "As `RequestFilter`, with more groups.",
			append(append(legacy, request...), storage.PropertiesGroup, storage.ValuesGroup)...),
		"UserFilter":    filterSchema("UserFilter", "As `RequestFilter`, with leaves about users. Leaves about requests choose the requests before they are added up; joined by `or` with leaves about users, they are true of a user when they are true of any of the user's requests.", append(request, storage.UsersView)...),
		"SessionFilter": filterSchema("SessionFilter", "As `UserFilter`, about sessions.", append(request, storage.SessionsView)...),
	}
	for _, f := range storage.Fields() {
		if f.Name == "" {
			continue
		}
		name := string(f.Group)
		group, ok := all[name].(openapi.Object)
		if !ok {
			group = exactlyOne(make(openapi.Object))
			all[name] = group
		}
		group["properties"].(openapi.Object)[f.Name] = fieldSchema(f)
	}
	return all
}

// exactlyOne is an object with one of the properties.
func exactlyOne(properties openapi.Object) openapi.Object {
	return openapi.Object{"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false, "properties": properties}
}

func fieldSchema(f *storage.Field) openapi.Object {
	operators := map[storage.Kind]string{
		storage.Text: "TextOperators", storage.Number: "NumberOperators", storage.Time: "TimestampOperators",
		storage.Boolean: "BooleanOperators", storage.ContainsText: "ContentOperators", storage.PropertyKey: "PropertyKeyOperators",
	}[f.Kind]
	switch {
	case f.Map && f.Kind == storage.Number:
		operators = "NamedNumbers"
	case f.Map:
		operators = "NamedTexts"
	}
	field := schema(operators)
	if f.About != "" {
		field["description"] = f.About
	}
	return field
}

// filterSchema is a filter with leaves of groups.
func filterSchema(name, text string, groups ...storage.Group) openapi.Object {
	leaves := make(openapi.Object)
	for _, g := range groups {
		leaves[string(g)] = schema(string(g))
		if f := storage.LookupField(g, ""); f != nil { // the group itself is a map
			leaves[string(g)] = fieldSchema(f)
		}
	}
	branch := openapi.Object{
		"type": "object", "required": []string{"left", "operator", "right"}, "additionalProperties": false,
		"properties": openapi.Object{
			"left": schema(name), "operator": openapi.Object{"type": "string", "enum": []string{"and", "or"}}, "right": schema(name),
		},
	}
	return openapi.Object{"description": text, "oneOf": []any{schema("All"), exactlyOne(leaves), branch}}
}

func sortSchema() openapi.Object {
	keys := openapi.Object{"random": openapi.Object{"type": "boolean", "description": "By chance, whatever the other keys say."}}
	for _, k := range storage.SortKeys() {
		keys[string(k)] = schema("Direction")
		if k.Named() {
			keys[string(k)] = openapi.Object{"type": "object", "additionalProperties": schema("Direction")}
		}
	}
	return openapi.Object{
		"type": "object", "description": "Keys apply in the order written; ties break by request id.",
		"maxProperties": 20, "additionalProperties": false, "properties": keys,
	}
}

// requestSchema returns the schema of a record. common has the part about the content.
func requestSchema() openapi.Object {
	var document struct {
		Components struct {
			Schemas struct{ Request openapi.Object }
		}
	}
	if err := json.Unmarshal(common, &document); err != nil {
		panic(err)
	}
	request := document.Components.Schemas.Request
	properties, required := request["properties"].(openapi.Object), []string{}
	for _, c := range shown {
		property := valueSchema(c.Column)
		property["description"] = c.About
		properties[c.Shown()] = property
		required = append(required, c.Shown())
	}
	request["required"] = required
	return request
}

// valueSchema returns the schema of what appendValue writes.
func valueSchema(c *storage.Column) openapi.Object {
	some := func(name string) openapi.Object {
		if c.Required {
			return openapi.Object{"type": name}
		}
		return openapi.Object{"type": []string{name, "null"}}
	}
	formatted := func(format string) openapi.Object {
		s := some("string")
		s["format"] = format
		return s
	}
	switch c.Zero().(type) {
	case *string:
		return some("string")
	case *plugins.Count, *plugins.Duration, *int, *int64:
		return some("integer")
	case *plugins.Cost:
		return some("number")
	case *bool:
		if c.Name == "" { // it is computed, and may be unknown
			return some("boolean")
		}
		return openapi.Object{"type": "boolean"}
	case *uuid.UUID:
		return formatted("uuid")
	case *storage.Timestamp:
		return formatted("date-time")
	case *storage.EndState:
		return openapi.Object{"type": "string"}
	case *storage.JSONText:
		return openapi.Object{"type": []string{"object", "null"}}
	case *map[string]string:
		return openapi.Object{"type": "object", "additionalProperties": openapi.Object{"type": "string"}}
	case *map[string]float64:
		return openapi.Object{"type": "object", "additionalProperties": openapi.Object{"type": "number"}}
	case *[]string:
		return openapi.Object{"type": "array", "items": openapi.Object{"type": "string"}}
	}
	return openapi.Object{"type": "null"}
}
