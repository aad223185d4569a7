package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// CallRules are what a provider takes of tools: of their names and parameters, and of the ids of their
// calls. All take ASCII letters, digits, "_" and "-". The zero value is what most take: names of up to 64
// bytes, and any ids.
type CallRules struct {
	// Name is the length of the longest name of a tool, in bytes, 0 for maxToolName.
	Name int
	// ID is the length of the longest id, in bytes, 0 for any.
	ID int
	// Exact: each id has just this length, and letters and digits alone.
	Exact bool
	// Word: ids have the characters of names, too.
	Word bool
	// Letter: names begin with a letter or "_".
	Letter bool
	// OneObject: the root of a tool's parameters has no anyOf, oneOf and allOf.
	OneObject bool
}

// FitCalls gives the tools names, and their calls ids, that a provider takes and that nothing else
// has. The Assembler gives the client its own names back. Equal names and ids become equal ones in
// every turn of a conversation, so that the provider's cache knows them. The error is a 400 for two
// tools of one name, or in a strict request for parameters that the provider does not take.
func (p *Request) FitCalls(r CallRules) error {
	p.Turns = slices.Clone(p.Turns)
	if err := p.fitTools(r); err != nil {
		return err
	}
	names := make(map[string]string)
	var tools, calls NameSet
	for i := range p.Tools {
		tools.Take(p.Tools[i].Name)
	}
	name := func(name string) string {
		if name == "" || r.TakesName(name) {
			return name
		}
		if _, ok := names[name]; !ok {
			names[name] = tools.Name(name, func(n int) string { return r.fitName(name, n) })
		}
		return names[name]
	}
	for i := range p.Tools {
		t := &p.Tools[i]
		if fitted := name(t.Name); fitted != t.Name && !t.Hosted() {
			t.Name, t.given = fitted, t.Name
		}
	}
	p.ToolChoice.Name = name(p.ToolChoice.Name)
	if p.ToolChoice.Allowed != nil {
		p.ToolChoice.Allowed = slices.Clone(p.ToolChoice.Allowed)
		for i, allowed := range p.ToolChoice.Allowed {
			p.ToolChoice.Allowed[i] = name(allowed)
		}
	}
	ids := make(map[string]string) // those of the latest calls, by the client's
	for i := range p.Turns {
		p.Turns[i].Items = slices.Clone(p.Turns[i].Items)
		for j, item := range p.Turns[i].Items {
			switch item := item.(type) {
			case *ToolCall:
				call := *item
				call.Name = name(call.Name)
				call.CallID = calls.Name(item.CallID, func(n int) string { return r.FitID(item.CallID, n) })
				ids[item.CallID] = call.CallID
				p.Turns[i].Items[j] = &call
			case *ToolOutput:
				output := *item
				output.Name, output.CallID = name(output.Name), ids[item.CallID]
				p.Turns[i].Items[j] = &output
			}
		}
	}
	return nil
}

// fitTools leaves out tools that are there twice, and gives the others parameters that the provider
// takes. Functions of MCP servers have names that no other tool has (nameMCPTools).
func (p *Request) fitTools(r CallRules) error {
	tools := make([]Tool, 0, len(p.Tools))
	byName := make(map[string]string, len(p.Tools)) // the tools as the client sent them
	work := 0                                       // of OneObject, for all tools together
	for _, t := range p.Tools {
		if !t.Hosted() && t.MCP == nil {
			switch known, ok := byName[t.Name]; {
			case ok && known == string(t.Raw):
				continue
			case ok:
				return plugins.Invalid(t.Param+".name", "Invalid value for '%s.name': the tool '%s' is there twice, with two meanings.", t.Param, t.Name)
			}
			byName[t.Name] = string(t.Raw)
		}
		if r.OneObject {
			parameters, joined, err := OneObject(t.Parameters, &work)
			if err != nil {
				return plugins.Invalid(t.Param+".parameters", "Invalid value for '%s.parameters': the provider takes one object as the schema of the tool '%s', but %v. Send fewer, or put them into a property.", t.Param, t.Name, err)
			}
			if t.Parameters = parameters; joined != nil {
				if err := p.DropWithWarning(t.Param+".parameters", "sent as one object without "+strings.Join(joined, ", ")+", which the provider does not take there"); err != nil {
					return err
				}
			}
		}
		tools = append(tools, t)
	}
	p.Tools = tools
	return nil
}

func (r CallRules) nameLimit() int {
	if r.Name > 0 {
		return r.Name
	}
	return maxToolName
}

// TakesName reports whether the provider takes a name of a tool.
func (r CallRules) TakesName(name string) bool {
	return len(name) <= r.nameLimit() && isWord(name) && (!r.Letter || beginsAsName(name))
}

// beginsAsName reports whether a name begins with a letter or "_".
func beginsAsName(name string) bool {
	return name[0] == '_' || name[0] >= 'A' && name[0] <= 'Z' || name[0] >= 'a' && name[0] <= 'z'
}

// fitName returns the nth name for a name that the provider does not take.
func (r CallRules) fitName(name string, n int) string {
	const digits = 8
	hashed := name + suffix(n)
	if name = toolWord(name); r.Letter && !beginsAsName(name) {
		name = "_" + name
	}
	return name[:min(len(name), r.nameLimit()-digits-1)] + "_" + hash(hashed, digits)
}

// FitID returns the nth id for an id of the client: the client's own if the provider takes it.
func (r CallRules) FitID(id string, n int) string {
	limit := r.ID
	if limit == 0 {
		limit = max(len(id)+len(suffix(n)), sha256.Size)
	}
	switch {
	case r.Exact && (n > 1 || len(id) != limit || strings.IndexFunc(id, func(c rune) bool { return !IsAlphanumeric(c) }) >= 0):
		return hash(id+suffix(n), limit)
	case len(id)+len(suffix(n)) > limit, r.Word && !isWord(id):
		const call = "call_"
		return call + hash(id+suffix(n), min(limit-len(call), sha256.Size))
	}
	return id + suffix(n)
}

// TakesID reports whether the provider takes the id of a call.
func (r CallRules) TakesID(id string) bool { return r.FitID(id, 1) == id }

// TakesChat reports whether the provider takes the names of the tools, and the ids of the calls, in
// a request of Chat Completions.
func (r CallRules) TakesChat(body *plugins.Object) bool {
	takes := true
	named := func(tool gjson.Result) bool {
		name := tool.Get("function.name").Str
		takes = name == "" || r.TakesName(name)
		return takes
	}
	body.Get("tools").ForEach(func(_, tool gjson.Result) bool { return named(tool) })
	if !takes || !body.MayHave("tool_calls") {
		return takes
	}
	body.Get("messages").ForEach(func(_, m gjson.Result) bool {
		m.Get("tool_calls").ForEach(func(_, call gjson.Result) bool {
			takes = named(call) && (r.ID == 0 || r.TakesID(call.Get("id").Str))
			return takes
		})
		return takes
	})
	return takes
}

// suffix makes the nth of equal names another one.
func suffix(n int) string {
	if n == 1 {
		return ""
	}
	return "_" + strconv.Itoa(n)
}

// hash returns n hexadecimal digits, at most 64. Equal texts have equal hashes.
func hash(text string, n int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:n]
}

// isWord reports whether a text has the characters of names, and some.
func isWord(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool { return !IsAlphanumeric(c) && c != '_' && c != '-' }) < 0
}
