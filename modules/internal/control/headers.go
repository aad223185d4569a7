package control

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Headers tells how control headers are spelled.
type Headers struct {
	// Prefixes are the canonical prefixes with their hyphen, `Service-` first.
	Prefixes []string

	properties map[string]string
}

// NewHeaders takes further prefixes, and the names of properties as they shall be spelled.
func NewHeaders(prefixes, properties []string) (*Headers, error) {
	h := &Headers{Prefixes: []string{"Service-"}, properties: make(map[string]string)}
	for _, p := range prefixes {
		if !httpguts.ValidHeaderFieldName(p) {
			return nil, fmt.Errorf("header_prefix %q: no header can start so", p)
		}
		canonical := http.CanonicalHeaderKey(strings.TrimSuffix(p, "-")) + "-"
		if !slices.Contains(h.Prefixes, canonical) {
			h.Prefixes = append(h.Prefixes, canonical)
		}
	}
	for _, name := range properties {
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, fmt.Errorf("property_names: %q is no part of a header name; send such names in Service-Properties", name)
		}
		h.properties[http.CanonicalHeaderKey(name)] = name
	}
	return h, nil
}

// Cut splits a canonical header name into one of the prefixes and the rest; ok
// is false where it has none of them.
func (h *Headers) Cut(header string) (name string, ok bool) {
	for _, p := range h.Prefixes {
		if name, ok := strings.CutPrefix(header, p); ok {
			return name, true
		}
	}
	return "", false
}

// Spelling returns how the property is spelled if its name arrives in a header. A filter for
// another spelling finds only what arrives in `Service-Properties`.
func (h *Headers) Spelling(property string) string {
	return h.propertyName(http.CanonicalHeaderKey(property))
}

// propertyName is how a property is spelled whose name arrived in a header.
func (h *Headers) propertyName(canonical string) string {
	if exact, ok := h.properties[canonical]; ok {
		return exact
	}
	return canonical
}
