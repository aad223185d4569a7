package llmgateway

import (
	_ "embed"
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/modules/internal/openapi"
)

// common is what the description says beside the operations.
//
//go:embed openapi.json
var common []byte

var description = openapi.New(common, describe)

func describe() (openapi.Operations, openapi.Object) {
	operations := make(openapi.Operations)
	for path, at := range byPath {
		operations[path] = make(map[string]*openapi.Operation)
		for s := range at.all() {
			operations[path][s.method] = s.operation()
		}
	}
	return operations, nil
}

func serveDescription(_ *Handler, w http.ResponseWriter, r *http.Request, _ *match) error {
	description.ServeHTTP(w, r)
	return nil
}

// The control headers that operations of a tag read.
var (
	ofUsers    = []string{"UserID"}
	ofFiles    = append(ofUsers, "SessionID", "SessionName", "SessionPath", "Properties", "RequestID", "OmitRequest", "OmitResponse")
	ofModels   = append(ofFiles, "PromptID", "PromptVersion", "ModelOverride", "ExperimentID", "NodeID", "JobID", "CacheEnabled", "CacheRead", "CacheSave", "CacheSeed", "CacheBuckets", "CacheIgnore", "CacheControl", "Cost", "DryRun", "Strict")
	controlsOf = map[string][]string{"models": ofModels, "files": ofFiles, "responses": ofUsers, "conversations": ofUsers}
)

func (s *servedRoute) operation() *openapi.Operation {
	o := &openapi.Operation{ID: s.id, Tags: []string{s.tag}, Summary: s.summary, Body: s.takes.body(s.fields)}
	switch {
	case strings.HasPrefix(s.docs, "https:"):
		o.Docs = openapi.Object{"url": s.docs}
	case s.docs != "":
		o.Docs = openapi.Object{"url": "https://platform.openai.com/docs/api-reference/" + s.docs}
	}
	for in, name := range map[string]string{"{id}": "ID", "{item}": "Item"} {
		if strings.Contains(s.path, in) {
			o.Parameters = append(o.Parameters, openapi.Ref("parameters", name))
		}
	}
	for _, name := range slices.Concat(s.query, controlsOf[s.tag]) {
		o.Parameters = append(o.Parameters, openapi.Ref("parameters", name))
	}
	errors := "OpenAI"
	if isAnthropic(s.dialect) {
		errors = "Anthropic"
	}
	o.Responses = map[string]openapi.Object{"4XX": openapi.Ref("responses", errors+"Refused"), "5XX": openapi.Ref("responses", errors+"Failed")}
	if s.takes == opensSocket {
		o.Responses["101"] = openapi.Object{"description": "The WebSocket is open."}
	} else {
		o.Responses["200"] = s.described()
	}
	if s.tag == "catalogue" { // is open, unless a key is required
		o.Security = []any{openapi.Object{}, openapi.Object{"key": []string{}}}
	}
	return o
}

// described describes the answer of a route. If a call has a record, the answer tells its id.
func (s *servedRoute) described() openapi.Object {
	answers := s.answers
	if answers == nil {
		answers = []string{jsonType}
	}
	content := make(openapi.Object)
	for _, t := range answers {
		content[t] = openapi.Object{}
	}
	answer := openapi.Object{"description": "The answer.", "content": content}
	if s.tag == "models" || s.tag == "files" {
		answer["headers"] = openapi.Object{"Service-Id": openapi.Ref("headers", "ID"), "Service-Warnings": openapi.Ref("headers", "Warnings")}
	}
	return answer
}

// takes is a set of what the body of a request may be.
type takes uint8

const (
	takesJSON takes = 1 << iota
	takesForm
	mayTakeJSON // or nothing
	opensSocket // there is no body

	takesNothing takes = 0
)

// body describes a body with fields that the gateway needs.
func (t takes) body(fields []string) openapi.Object {
	schema := openapi.Object{"type": "object"}
	if len(fields) > 0 {
		schema["required"] = fields
	}
	content := make(openapi.Object)
	if t&(takesJSON|mayTakeJSON) != 0 {
		content[jsonType] = openapi.Object{"schema": schema}
	}
	if t&takesForm != 0 {
		content["multipart/form-data"] = openapi.Object{"schema": schema}
	}
	if len(content) == 0 {
		return nil
	}
	return openapi.Object{"required": t&mayTakeJSON == 0, "content": content}
}
