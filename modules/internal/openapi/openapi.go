// Package openapi describes endpoints in OpenAPI 3.1, by their routes, and serves the
// descriptions.
package openapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Object is a JSON object of a description.
type Object = map[string]any

// Operation is what one method of a path does
// (https://spec.openapis.org/oas/v3.1.0.html#operation-object).
type Operation struct {
	ID          string   `json:"operationId"`
	Tags        []string `json:"tags"`
	Summary     string   `json:"summary"`
	Description string   `json:"description,omitempty"`
	Docs        Object   `json:"externalDocs,omitempty"`
	// Security overrides that of the document unless it is nil.
	Security   any               `json:"security,omitempty"`
	Parameters []Object          `json:"parameters,omitempty"`
	Body       Object            `json:"requestBody,omitempty"`
	Responses  map[string]Object `json:"responses"`
}

// Ref refers to a component of a kind, such as schemas.
func Ref(kind, name string) Object { return Object{"$ref": "#/components/" + kind + "/" + name} }

// Content is the content of a body: its schema by its type.
func Content(contentType string, schema Object) Object {
	return Object{contentType: Object{"schema": schema}}
}

// Document is a description. It is made when it is asked for, so that commands start without it.
type Document struct {
	document func() (text []byte, tag string)
}

// Operations are those of a description, by path and method.
type Operations = map[string]map[string]*Operation

// New returns the description of operations. common is the JSON of all that is said beside: who
// serves them, and components, to which schemas are added. Malformed JSON panics: it is a file
// of this program.
func New(common []byte, describe func() (operations Operations, schemas Object)) *Document {
	return &Document{sync.OnceValues(func() ([]byte, string) { return write(common, describe) })}
}

func write(common []byte, describe func() (Operations, Object)) (text []byte, tag string) {
	operations, schemas := describe()
	var document Object
	if err := json.Unmarshal(common, &document); err != nil {
		panic(fmt.Errorf("what is common to descriptions: %w", err))
	}
	paths := make(Object)
	for path, methods := range operations {
		item := make(Object)
		for method, operation := range methods {
			item[strings.ToLower(method)] = operation
		}
		paths[path] = item
	}
	document["paths"] = paths
	maps.Copy(document["components"].(Object)["schemas"].(Object), schemas)
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		panic(err) // schemas are of texts, numbers, lists and objects
	}
	return text, fmt.Sprintf(`"%x"`, sha256.Sum256(text))
}

// Text is the JSON of the description.
func (d *Document) Text() []byte {
	text, _ := d.document()
	return text
}

// ServeHTTP implements http.Handler for GET and HEAD.
func (d *Document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, tag := d.document()
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "public, max-age=3600")
	header.Set("Etag", tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}
