package llmcontrol

import (
	_ "embed"
	"net/http"
	"strconv"
	"strings"

	"github.com/weirhq/weir/modules/internal/openapi"
)

// common has all of the OpenAPI description but the endpoints.
//
//go:embed openapi.json
var common []byte

// descriptionPath is the path of the OpenAPI description, which needs no key.
const descriptionPath = "/v1/keys/openapi.json"

var description = openapi.New(common, describe)

func describe() (openapi.Operations, openapi.Object) {
	operations := make(openapi.Operations)
	for _, e := range endpoints {
		if operations[e.path] == nil {
			operations[e.path] = make(map[string]*openapi.Operation)
		}
		operations[e.path][e.method] = e.operation()
	}
	return operations, nil
}

// failures are the names of the component that describes a response, by its status.
var failures = map[string]string{"400": "BadRequest", "401": "Unauthorized", "403": "Forbidden", "404": "NotFound", "409": "Conflict", "503": "Unavailable"}

// pathParameters are the parameters in paths, each with the name of its component.
var pathParameters = [][2]string{{"{project}", "ProjectID"}, {"{id}", "ID"}, {"{name}", "BudgetName"}}

// operation returns the description of the endpoint.
func (e endpoint) operation() *openapi.Operation {
	o := &openapi.Operation{ID: e.id, Tags: []string{e.tag}, Summary: e.summary, Responses: make(map[string]openapi.Object)}
	answer := openapi.Object{"type": "null"}
	if e.answer != "" {
		answer = openapi.Ref("schemas", e.answer)
	}
	if !e.openAI() {
		answer = openapi.Object{"type": "object", "properties": openapi.Object{"data": answer, "error": openapi.Object{"type": "null"}}}
	}
	o.Responses[strconv.Itoa(e.status)] = openapi.Object{"description": "Done.", "content": openapi.Content("application/json", answer)}
	statuses := []string{"401", "503"} // of failures
	if e.scope == "" {
		o.Security = []openapi.Object{{"key": []string{}}}
	}
	if e.scope != "" || e.method != http.MethodGet {
		statuses = append(statuses, "400", "403")
	}
	for _, name := range e.query {
		o.Parameters = append(o.Parameters, openapi.Ref("parameters", name))
	}
	if e.method != http.MethodGet {
		statuses = append(statuses, "409")
	}
	for _, p := range pathParameters {
		if strings.Contains(e.path, p[0]) {
			o.Parameters = append(o.Parameters, openapi.Ref("parameters", p[1]))
			statuses = append(statuses, "404")
		}
	}
	if e.body != "" {
		o.Body = openapi.Object{"content": openapi.Content("application/json", openapi.Ref("schemas", e.body))}
	}
	for _, status := range statuses {
		o.Responses[status] = openapi.Ref("responses", failures[status])
		if e.openAI() {
			o.Responses[status] = openapi.Ref("responses", "OpenAIFailure")
		}
	}
	return o
}
