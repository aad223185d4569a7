package llmgateway

import (
	"bufio"
	"bytes"
	"mime"
	"net/textproto"
	"regexp"
	"strings"

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

// partHeader is a header of a part that all readers read alike. They differ in what they make of
// two dispositions, of a name in the extended notation (RFC 7578, section 4.2, forbids it), of escapes in a
// name, of lines that are folded or end in LF alone, and of an encoding of the value.
var partHeader = regexp.MustCompile(`^(?i:\r\n(?:` +
	`Content-Disposition: *form-data; *name="[^"\\\r\n]*"(?:; *filename="(?:[^"\\\r\n]|\\["\\])*")?(?:; *filename\*=[^;"\r\n]*)?` +
	`|Content-Type: *[^\r\n]*|Content-Length: *[0-9]+|Content-Transfer-Encoding: *(?:7bit|8bit|binary)))+\r\n\r\n$`)

// parseForm reads a form by its Content-Type. It returns nil if the body is not a form, or one that
// the provider could read in another way.
func parseForm(contentType string, body []byte) *form {
	_, parameters, err := mime.ParseMediaType(contentType)
	delimiter := []byte("\r\n--" + parameters["boundary"])
	if err != nil || parameters["boundary"] == "" || strings.Contains(contentType, "*") || !bytes.HasPrefix(body, delimiter[2:]) {
		return nil
	}
	f := &form{body: body}
	at := len(delimiter) - 2
	for range maxParts {
		rest := body[at:]
		if end, last := bytes.CutPrefix(rest, []byte("--")); last && (len(end) == 0 || bytes.HasPrefix(end, []byte("\r\n"))) {
			return f
		}
		start := bytes.Index(rest, []byte("\r\n\r\n")) + len("\r\n\r\n")
		end := bytes.Index(rest[start:], delimiter)
		if start < len("\r\n\r\n") || end < 0 {
			return nil
		}
		end += start
		if head := rest[:start]; !partHeader.Match(head) || bytes.Count(bytes.ToLower(head), []byte("content-disposition:")) != 1 {
			return nil
		}
		header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(bytes.TrimLeft(rest[:start], "\r\n")))).ReadMIMEHeader()
		_, disposition, err2 := mime.ParseMediaType(header.Get("Content-Disposition"))
		if err != nil || err2 != nil {
			return nil
		}
		if _, isFile := disposition["filename"]; isFile {
			f.files = append(f.files, rest[start:end])
		} else {
			f.fields = append(f.fields, formField{disposition["name"], at + start, at + end})
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
