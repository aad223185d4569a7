package llmgateway

import (
	"bufio"
	"bytes"
	"mime"
	"net/textproto"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// form is a body of multipart/form-data (RFC 7578).
type form struct {
	body   []byte
	fields []formField // without the files
	files  [][]byte
}

// formField is a field whose value is body[start:end].
type formField struct {
	name       string
	start, end int
}

// maxParts bounds how many parts a form has.
const maxParts = 1000

// parseForm reads a form by its Content-Type. It returns nil if the body is not a form.
func parseForm(contentType string, body []byte) *form {
	_, parameters, err := mime.ParseMediaType(contentType)
	delimiter := []byte("\r\n--" + parameters["boundary"])
	if err != nil || parameters["boundary"] == "" || !bytes.HasPrefix(body, delimiter[2:]) {
		return nil
	}
	f := &form{body: body}
	at := len(delimiter) - 2
	for range maxParts {
		rest := body[at:]
		if bytes.HasPrefix(rest, []byte("--")) {
			return f
		}
		start := bytes.Index(rest, []byte("\r\n\r\n")) + len("\r\n\r\n")
		end := bytes.Index(rest[start:], delimiter)
		if start < len("\r\n\r\n") || end < 0 {
			return nil
		}
		end += start
		header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(bytes.TrimLeft(rest[:start], "\r\n")))).ReadMIMEHeader()
		_, said, err2 := mime.ParseMediaType(header.Get("Content-Disposition"))
		if err != nil || err2 != nil {
			return nil
		}
		if _, isFile := said["filename"]; isFile {
			f.files = append(f.files, rest[start:end])
		} else {
			f.fields = append(f.fields, formField{said["name"], at + start, at + end})
		}
		at += end + len(delimiter)
	}
	return nil
}

// get returns the last value of a field.
func (f *form) get(name string) (value []byte, ok bool) {
	for _, field := range f.fields {
		if field.name == name {
			value, ok = f.body[field.start:field.end], true
		}
	}
	return value, ok
}

// field returns a field as a body in JSON would have it.
func (f *form) field(name string) gjson.Result {
	value, ok := f.get(name)
	switch {
	case !ok:
		return gjson.Result{}
	case name != "model" && plugins.ValidJSON(value):
		return gjson.ParseBytes(value)
	}
	text := string(value)
	return gjson.Result{Type: gjson.String, Raw: text, Str: text}
}

// withModel returns the body in parts, with the model in the place of each field `model`.
func (f *form) withModel(model string) [][]byte {
	var parts [][]byte
	rest := 0
	for _, field := range f.fields {
		if field.name == "model" {
			parts = append(parts, f.body[rest:field.start], []byte(model))
			rest = field.end
		}
	}
	return append(parts, f.body[rest:])
}
