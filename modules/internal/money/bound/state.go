package bound

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// State is what a request refers to that a provider keeps.
type State struct {
	Field string // the first field that only the provider who keeps it can serve, "" if there is none
	Hint  string // what else the client can do
	IDs   []StateID
}

// StateID is an id that a provider gave out, and the parameter that has it.
type StateID struct {
	Param, ID string
	Answer    bool // the id is that of an answer
	Reasoning bool // the id is that of a reasoning item, which the model can do without
	Native    bool // no translation sends the id
}

// NotYours refuses an id of which nothing shows that an account, which others use, gave it to the
// organisation. hint says what else the client can do.
func (s StateID) NotYours(account, hint string) *plugins.Error {
	e := plugins.Unsupported(s.Param, "'%s' names what %s keeps, and is not known to be yours: the account is shared with others.%s", s.Param, account, hint)
	if s.Param == "previous_response_id" { // clients send the whole conversation then
		e.Code = "previous_response_not_found"
	}
	return e
}

// StateOf looks through a request. Of a field that stands twice it reads both:
// libraries differ in which they take.
func StateOf(d plugins.Dialect, request *plugins.Object) (found State) {
	fields := apiOf(d)
	mayName := slices.ContainsFunc(fields.ids, request.MayHave)
	for _, field := range request.Members {
		switch name, v := field.Name, field.Value; {
		case d.OfResponses() && name == "input":
			found.addItems(v, mayName)
		case d.OfResponses() && (name == "previous_response_id" || name == "conversation" || name == "prompt"):
			if v.Type == gjson.Null || v.Type == gjson.False {
				break
			}
			if found.Field == "" {
				found.Field, found.Hint = name, ""
			}
			found.IDs = append(found.IDs, StateID{Param: name, ID: v.Str + v.Get("id").Str, Answer: name == "previous_response_id"})
		case d == plugins.Batches && name == "requests": // of Anthropic
			found.addBatched(v)
		case slices.Contains(contentFields, name):
			if mayName {
				found.addBelow(name, v, fields.listed, 0)
			}
		case name == "tools":
			if mayName || mayHaveID(v.Raw) {
				found.addBelow(name, v, fields.meaning, 0)
			}
		case d == plugins.Batches:
			found.addField(name, name, v, fields.listed, 0)
		default:
			found.addField(name, name, v, fields.meaning, 0)
		}
	}
	return found
}

// addBatched adds what the calls of a batch of Messages refer to.
func (s *State) addBatched(requests gjson.Result) {
	requests.ForEach(func(_, request gjson.Result) bool {
		request.ForEach(func(key, v gjson.Result) bool {
			if key.Str == "params" {
				params, _ := plugins.ParseObject([]byte(v.Raw))
				s.IDs = append(s.IDs, StateOf(plugins.Messages, params).IDs...)
			}
			return true
		})
		return true
	})
}

// contentFields hold parts of a conversation.
var contentFields = []string{"contents", "images", "mask", "messages", "requests", "systemInstruction", "system_instruction"}

func (s *State) addItems(input gjson.Result, mayName bool) {
	fields := apiOf(plugins.Responses)
	i := 0
	input.ForEach(func(_, item gjson.Result) bool {
		param := fmt.Sprintf("input[%d]", i)
		s.addItem(param, item)
		if mayName {
			s.addBelow(param, item, fields.listed, 0)
		}
		i++
		return true
	})
}

// addItem adds what a provider looks up for an item: what its id refers to, unless the item
// has the content itself.
func (s *State) addItem(param string, item gjson.Result) {
	var ids []StateID
	var references, reasoning, typed, lookedUp, complete bool
	item.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "id":
			ids = appendIDs(ids, param, v)
		case "type":
			references = references || v.Str == "item_reference"
			reasoning = reasoning || v.Str == "reasoning"
			lookedUp = lookedUp || v.Str == "reasoning" || v.Str == "image_generation_call"
			typed = typed || v.Type == gjson.String
		case "role":
			typed = true
		case "encrypted_content", "result":
			complete = v.Type == gjson.String && v.Str != ""
		}
		return true
	})
	if references = references || !typed && ids != nil; references && s.Field == "" {
		s.Field, s.Hint = param, " Clients send the item itself when 'store' is false."
	}
	if references || lookedUp && !complete {
		for _, id := range ids {
			id.Native, id.Reasoning = true, reasoning && !references
			s.IDs = append(s.IDs, id)
		}
	}
}

// clientFields hold what the client or the model has made up, in which a name means nothing
// to the provider. Codex has the ids of its sessions and turns in client_metadata
// (https://github.com/openai/codex).
var clientFields = []string{
	"args", "client_metadata", "input", "input_examples", "input_schema", "json_schema", "labels", "metadata", "parameters", "parametersJsonSchema",
	"parameters_json_schema", "response", "responseJsonSchema", "responseSchema", "response_json_schema", "response_schema", "schema",
}

// translatedFields are those whose ids translations send to other providers, too.
var translatedFields = []string{
	"audio", "cachedContent", "cached_content", "container", "container_id", "fileUri", "file_id", "file_ids", "file_uri", "skill_id", "vector_store_ids",
}

// answerFields name an earlier answer.
var answerFields = []string{"comparison_response_id", "previous_message_id", "previous_response_id"}

// maxDepth is how deep AddAnswer and Said look. Each level reads all that is below the level again.
const maxDepth = 256

// AddAnswer adds what an answer names that its provider keeps.
func (s *State) AddAnswer(d plugins.Dialect, answer gjson.Result) {
	s.addBelow("", answer, apiOf(d).listed, 0)
}

// addBelow adds the ids in the fields of an object, or of those in a list. What is nested too deep
// to be looked at counts as an id that nobody knows.
func (s *State) addBelow(param string, v gjson.Result, meaningOf func(name string) meaning, depth int) {
	if depth == maxDepth {
		s.IDs = append(s.IDs, StateID{Param: param})
		return
	}
	v.ForEach(func(key, v gjson.Result) bool {
		s.addField(param, key.Str, v, meaningOf, depth)
		return true
	})
}

// addField adds the ids in a field, and in the fields below it.
func (s *State) addField(param, name string, v gjson.Result, meaningOf func(name string) meaning, depth int) {
	var ids []StateID
	switch m := meaningOf(name); {
	case m <= clientText, isPublic(name, v.Str):
	case m == providerState && !v.IsObject():
		ids = appendIDs(ids, param, v)
	case v.IsObject():
		ids = appendIDs(ids, param, v.Get("id"))
	}
	for _, id := range ids {
		id.Native, id.Answer = !slices.Contains(translatedFields, name), slices.Contains(answerFields, name)
		s.IDs = append(s.IDs, id)
	}
	if (v.IsObject() || v.IsArray()) && !slices.Contains(clientFields, name) {
		s.addBelow(param, v, meaningOf, depth+1)
	}
}

// publicSkills are Anthropic's own
// (https://platform.claude.com/docs/en/build-with-claude/skills-guide).
var publicSkills = []string{"docx", "pdf", "pptx", "xlsx"}

// isPublic reports whether what a field names is there for everybody: a skill of the vendor's own,
// which have a prefix at OpenAI (https://developers.openai.com/api/docs/guides/tools-skills), or
// an address that anybody can read. Gemini's own files have addresses that take a key
// (https://ai.google.dev/api/files).
func isPublic(field, text string) bool {
	switch field {
	case "skill_id":
		return slices.Contains(publicSkills, text) || strings.HasPrefix(text, "openai-")
	case "fileUri", "file_uri":
		u, err := url.Parse(text)
		return err == nil && u.Scheme == "https" && !strings.HasSuffix(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), "googleapis.com")
	}
	return false
}

// Add adds the strings that v is or has.
func (s *State) Add(param string, v gjson.Result) { s.IDs = appendIDs(s.IDs, param, v) }

// appendIDs appends the strings that v is or has.
func appendIDs(ids []StateID, param string, v gjson.Result) []StateID {
	for _, id := range v.Array() {
		if id.Type == gjson.String {
			ids = append(ids, StateID{Param: param, ID: id.Str})
		}
	}
	return ids
}
