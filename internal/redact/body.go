package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// signs are how a text begins in a body with credentials.
var signs = [][]byte{[]byte(`mcp`), []byte(`data_sources"`), []byte(`domain_secrets"`), []byte(`ek_`), []byte(`sk-`)}

// hasSign reports whether a text of a body begins with one of the signs, in one pass: every body
// comes here, and few have a sign.
func hasSign(body []byte) bool {
	for {
		i := bytes.IndexByte(body, '"') + 1
		if i == 0 || i == len(body) {
			return false
		}
		switch body = body[i:]; body[0] {
		case 'd', 'e', 'm', 's':
			if slices.ContainsFunc(signs, func(sign []byte) bool { return bytes.HasPrefix(body, sign) }) {
				return true
			}
		}
	}
}

// mentions reports whether a body may have credentials: it has a sign, or an escaped letter.
func mentions(body []byte) bool {
	if hasSign(body) {
		return true
	}
	for {
		i := bytes.Index(body, []byte(`\u00`))
		if i < 0 || i+4 >= len(body) {
			return false
		}
		if '5' <= body[i+4] && body[i+4] <= '7' {
			return true
		}
		body = body[i+4:]
	}
}

// secretNames are the names of members whose values may be secrets.
var secretNames = []memberName{secretName, addressName, valueName}

// maxNames bounds the names of members whose meaning is remembered.
const maxNames = 1000

// maxDepth bounds the nesting of a body with one of the signs.
const maxDepth = 10_000

// Body returns a body with null in place of credentials:
//
//   - of MCP servers, in the formats of all vendors: authorization and headers of a tool of the type
//     mcp, authorization_token of a member of Anthropic's mcp_servers, and an address with a user or
//     a query. Of other types that begin with mcp, such as mcp_call, only the object's own members
//     are credentials; what is deeper is content
//   - domain_secrets of OpenAI's containers
//   - authentication in Azure's data_sources
//   - a member value that begins like OpenAI's keys: answers that create keys have it
//
// The body may be incomplete, or a sequence of JSON texts, such as events. A body in UTF-16 or
// UTF-32 with credentials becomes UTF-8. A body that is nested too deeply becomes nil.
//
// https://platform.openai.com/docs/guides/tools-connectors-mcp
// https://platform.claude.com/docs/en/agents-and-tools/mcp-connector
func Body(body []byte) []byte {
	text := UTF8(body)
	if !mentions(text) {
		return body
	}
	s := bodyScanner{body: text, names: make(map[string]memberName)}
	if !s.scan() {
		return nil
	}
	if len(s.secrets) == 0 {
		return body
	}
	return s.clean()
}

// bodyScanner finds the secrets of a body.
type bodyScanner struct {
	body []byte
	open []scope
	// pending are secrets if the open objects prove to be MCP servers. secrets are certain.
	pending, secrets []span
	names            map[string]memberName // by how the body writes them: it repeats them
}

// span is a part of a body. depth is the number of objects and arrays around it.
type span struct{ from, to, depth int }

// scope is an object or an array that is open.
type scope struct {
	object         bool // not an array
	server         bool // a member of mcp_servers, or of the type mcp
	ownMembersOnly bool // another type that begins with mcp, or authentication: only its own members are secrets
	hasType        bool // its type was read
	serverList     bool // the array mcp_servers
	secretValues   bool // domain_secrets, or something in it: a member called value is secret
	wantsName      bool // the next text is the name of a member
	name           memberName
	value          int // offset of the value of the current member
	firstPending   int // index of its first pending secret
}

// memberName classifies the name of a member.
type memberName int

const (
	otherName memberName = iota
	typeName
	serversName
	secretName
	addressName
	secretsName
	valueName
	authenticationName
)

// scan finds the secrets. It reports false if the body is nested too deeply.
func (s *bodyScanner) scan() bool {
	for i := 0; i < len(s.body); i++ {
		switch c := s.body[i]; c {
		case '"':
			end := TextEnd(s.body, i+1)
			s.text(s.body[i+1 : end])
			i = end
		case '{', '[':
			if len(s.open) == maxDepth {
				return false
			}
			s.begin(c == '{')
		case '}', ']':
			s.end(i)
		case ',':
			s.endMember(i)
		case ':':
			if top := s.top(); top != nil && top.wantsName {
				top.wantsName, top.value = false, i+1
			}
		}
	}
	for len(s.open) > 0 { // the body was cut: what may be a secret counts as one
		top := s.top()
		top.server = top.server || !top.hasType
		s.end(len(s.body))
	}
	return true
}

func (s *bodyScanner) top() *scope {
	if len(s.open) == 0 {
		return nil
	}
	return &s.open[len(s.open)-1]
}

func (s *bodyScanner) begin(object bool) {
	n := scope{object: object, wantsName: object, firstPending: len(s.pending)}
	if top := s.top(); top != nil {
		n.serverList = !object && top.object && top.name == serversName
		n.server = object && (top.serverList || top.object && top.name == serversName)
		n.ownMembersOnly = object && top.object && top.name == authenticationName
		n.secretValues = top.secretValues || top.object && top.name == secretsName
	}
	s.open = append(s.open, n)
}

func (s *bodyScanner) end(at int) {
	s.endMember(at)
	top := s.top()
	if top == nil {
		return
	}
	for _, secret := range s.pending[top.firstPending:] {
		if top.server || top.ownMembersOnly && secret.depth == len(s.open) {
			s.secrets = append(s.secrets, secret)
		}
	}
	s.pending = s.pending[:top.firstPending]
	s.open = s.open[:len(s.open)-1]
}

// endMember ends the value of a member at the offset at.
func (s *bodyScanner) endMember(at int) {
	top := s.top()
	if top == nil || !top.object {
		return
	}
	if !top.wantsName && slices.Contains(secretNames, top.name) {
		value := bytes.TrimRight(s.body[top.value:at], " \t\r\n")
		indent := len(value) - len(bytes.TrimLeft(value, " \t\r\n"))
		found := span{top.value + indent, top.value + len(value), len(s.open)}
		switch value = value[indent:]; {
		case top.name == valueName:
			if top.secretValues || bytes.HasPrefix(value, []byte(`"sk-`)) || bytes.HasPrefix(value, []byte(`"ek_`)) {
				s.secrets = append(s.secrets, found)
			}
		case top.name == secretName || bytes.ContainsAny(value, "?@") || bytes.Contains(value, []byte(`\u`)):
			s.pending = append(s.pending, found)
		}
	}
	top.wantsName, top.name = true, otherName
}

// text reads the name of a member, or its value.
func (s *bodyScanner) text(raw []byte) {
	top := s.top()
	if top == nil || !top.object || !top.wantsName && top.name != typeName {
		return
	}
	const maxText = 256 // longer than any name or type that matters
	if len(raw) > maxText {
		return
	}
	if top.wantsName {
		top.name = s.meaning(raw)
	} else if kind, ok := unescaped(raw); ok {
		top.hasType = true
		switch kind := strings.ToLower(string(kind)); {
		case kind == "mcp", kind == "mcp_server":
			top.server = true
		case strings.HasPrefix(kind, "mcp"):
			top.ownMembersOnly = true
		}
	}
}

// meaning returns the class of a member's name.
func (s *bodyScanner) meaning(raw []byte) memberName {
	name, known := s.names[string(raw)]
	if known {
		return name
	}
	if text, ok := unescaped(raw); ok {
		switch text := strings.ToLower(string(text)); {
		case text == "type":
			name = typeName
		case text == "mcp_servers":
			name = serversName
		case text == "url", text == "server_url":
			name = addressName
		case text == "domain_secrets":
			name = secretsName
		case text == "value":
			name = valueName
		case text == "authentication":
			name = authenticationName
		case text == "headers", Credential(text):
			name = secretName
		}
	}
	if len(s.names) < maxNames {
		s.names[string(raw)] = name
	}
	return name
}

// unescaped returns a text without escapes. It reports false for an invalid one.
func unescaped(raw []byte) ([]byte, bool) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, true
	}
	var text string
	err := json.Unmarshal([]byte(`"`+string(raw)+`"`), &text)
	return []byte(text), err == nil
}

// clean returns the body with null in place of the secrets.
func (s *bodyScanner) clean() []byte {
	slices.SortFunc(s.secrets, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	b := make([]byte, 0, len(s.body))
	done := 0
	for _, secret := range s.secrets {
		if secret.from < done { // within another one
			continue
		}
		b = append(append(b, s.body[done:secret.from]...), "null"...)
		done = secret.to
	}
	return append(b, s.body[done:]...)
}

// TextEnd returns the offset of the quote that ends the text at an offset, or the body's length if
// there is none.
func TextEnd(body []byte, at int) int {
	for from := at; ; {
		i := bytes.IndexByte(body[from:], '"')
		if i < 0 {
			return len(body)
		}
		end := from + i
		escape := end
		for escape > at && body[escape-1] == '\\' {
			escape--
		}
		if (end-escape)%2 == 0 {
			return end
		}
		from = end + 1
	}
}
