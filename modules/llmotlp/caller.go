package llmotlp

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/storage"
)

// association begins the attributes that OpenLLMetry puts on all spans of one task of an
// application.
const association = "traceloop.association.properties."

// caller fills in who made the call and what it belongs to: from control headers among the
// association properties, then from other attributes of the conventions. These are read as
// control headers, too, so that the same bounds hold. caller returns warnings.
//
// Service-Auth and Service-Request-Id mean nothing here: the batch has the key, and the id comes
// from the span's. An attribute with the name of a credential is not kept.
func (c *call) caller(headers *control.Headers, omitted *control.Controls, r *storage.Record) (warnings []string) {
	stated, implied := c.headers(headers), make(http.Header)
	imply := func(name, value string) {
		if value != "" && implied[name] == nil {
			implied[name] = []string{value}
		}
	}
	label := func(origin, name, value string) {
		if redact.Credential(name) {
			warnings = append(warnings, origin+": ignored a property that is named like a credential")
			return
		}
		imply("Service-Property-"+name, value)
	}
	imply("Service-User-Id", c.text(userNames...))
	imply("Service-Session-Id", c.text(sessionNames...))
	imply("Service-Prompt-Id", c.text("gen_ai.prompt.name", "traceloop.prompt.key", observation+"prompt.name"))
	imply("Service-Prompt-Version", c.text("traceloop.prompt.version", "llm.prompt_template.version", observation+"prompt.version"))

	metadata := func(origin, name, value string) {
		_, control := headers.Cut(http.CanonicalHeaderKey(name))
		switch key := kind(name); {
		case control && origin == association || strings.HasPrefix(name, "ls_") || slices.Contains(rawUsageNames, origin+name) || name == "usage_object":
			// a control header, or what a convention has beside what the application says
		case metadataUsers[key]:
			imply("Service-User-Id", value)
		case metadataSessions[key]:
			imply("Service-Session-Id", value)
		default:
			label(strings.TrimSuffix(origin, "."), name, value)
		}
	}
	for _, kv := range c.span.Attributes {
		for _, prefix := range metadataPrefixes {
			if name, ok := strings.CutPrefix(kv.GetKey(), prefix); ok {
				metadata(prefix, name, scalar(kv.Value))
			}
		}
	}
	for _, key := range metadataNames {
		for name, value := range c.object(key) {
			metadata(key, name, value)
		}
	}
	for _, name := range slices.Concat(taskNames, langfuseLabels) {
		imply("Service-Property-"+name, strings.Join(c.texts(name), ","))
		imply("Service-Property-"+name, strings.Join(c.resource.texts(name), ","))
	}
	if c.text(observation+"type") != "" {
		imply("Service-Property-"+observation+"name", c.span.GetName())
	}
	if service := c.resource.text("service.name"); !strings.HasPrefix(service, "unknown_service") {
		imply("Service-Property-service.name", service)
	}
	for name, value := range c.object("traceloop.prompt.template_variables", "llm.prompt_template.variables") {
		imply("Service-Prompt-Input-"+name, value)
	}

	first := control.Read(stated, headers, r)
	second := control.Read(implied, headers, r)
	control.SessionProperties(r)
	r.RequestOmitted = first.OmitRequest || omitted.OmitRequest
	r.ResponseOmitted = first.OmitResponse || omitted.OmitResponse
	if !r.RequestOmitted {
		c.inputs = second.Inputs
		for name, value := range first.Inputs {
			if c.inputs == nil {
				c.inputs = make(map[string]string)
			}
			c.inputs[name] = value
		}
	}
	return slices.Concat(warnings, first.Warnings, second.Warnings)
}

// header is a header in llm.headers as Python prints it. OpenLLMetry writes either that or
// JSON.
var header = regexp.MustCompile(`["']([A-Za-z0-9-]+)["']: *(?:"([^"\\]*)"|'([^'\\]*)')`)

// headers returns the control headers among the association properties, and among the headers
// that the application sent to the provider. It reads no other header: some are credentials.
func (c *call) headers(headers *control.Headers) http.Header {
	found := make(http.Header)
	add := func(name, value string) {
		name = http.CanonicalHeaderKey(name)
		if _, control := headers.Cut(name); control && !slices.Contains(found[name], value) {
			found[name] = append(found[name], value)
		}
	}
	for _, kv := range c.span.Attributes {
		if name, ok := strings.CutPrefix(kv.GetKey(), association); ok {
			add(name, scalar(kv.Value))
		}
	}
	for _, key := range []string{"llm.headers", "gen_ai.headers"} {
		if c.json(key) == nil {
			for _, sent := range header.FindAllStringSubmatch(c.text(key), -1) {
				add(sent[1], sent[2]+sent[3])
			}
			continue
		}
		for name, value := range c.object(key) {
			add(name, value)
		}
	}
	return found
}
