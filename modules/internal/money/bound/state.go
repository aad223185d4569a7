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
	Item      bool // the id is that of an item, which no translation sends
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
	hasFiles := slices.ContainsFunc(fileFields, request.MayHave)
	for _, field := range request.Members {
		switch name, v := field.Name, field.Value; {
		case d.OfResponses() && name == "input":
			found.addItems(v, hasFiles)
		case d.OfResponses() && (name == "previous_response_id" || name == "conversation" || name == "prompt"):
			if v.Type == gjson.Null || v.Type == gjson.False {
				break
			}
			if found.Field == "" {
				found.Field, found.Hint = name, ""
			}
			found.IDs = append(found.IDs, StateID{Param: name, ID: v.Str + v.Get("id").Str})
		case name == "container" || name == "thread": // of Anthropic's code execution, and of a conversation there
			found.Add(name, v)
			if id := v.Get("id"); id.Type == gjson.String {
				found.IDs = append(found.IDs, StateID{Param: name, ID: id.Str})
			}
			found.AddFiles(name, v)
		case name == "cachedContent" || name == "cached_content": // of Gemini
			found.Add(name, v)
		case d == plugins.Batches && name == "requests": // of Anthropic
			found.addBatched(v)
		case d == plugins.Batches && name == "batch": // of Gemini
			found.AddFiles(name, v)
			found.addFileNames(name, v)
		case hasFiles && slices.Contains(contentFields, name):
			found.AddFiles(name, v)
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

// addFileNames adds the names of files with the calls of a batch of Gemini, in either spelling.
func (s *State) addFileNames(param string, batch gjson.Result) {
	batch.ForEach(func(_, config gjson.Result) bool {
		config.ForEach(func(key, v gjson.Result) bool {
			if key.Str == "fileName" || key.Str == "file_name" {
				s.Add(param, v)
			}
			return true
		})
		return true
	})
}

// contentFields hold parts of a conversation, or tools.
var contentFields = []string{"contents", "images", "mask", "messages", "requests", "systemInstruction", "system_instruction", "tools"}

func (s *State) addItems(input gjson.Result, hasFiles bool) {
	i := 0
	input.ForEach(func(_, item gjson.Result) bool {
		param := fmt.Sprintf("input[%d]", i)
		s.addItem(param, item)
		if hasFiles {
			s.AddFiles(param, item)
		}
		i++
		return true
	})
}

// addItem adds what a provider looks up for an item: what its id refers to, unless the item
// has the content itself.
func (s *State) addItem(param string, item gjson.Result) {
	var ids []StateID
	var references, typed, looked, whole bool
	item.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "id":
			ids = appendIDs(ids, param, v)
		case "type":
			references = references || v.Str == "item_reference"
			looked = looked || v.Str == "reasoning" || v.Str == "image_generation_call"
			typed = typed || v.Type == gjson.String
		case "role":
			typed = true
		case "encrypted_content", "result":
			whole = v.Type == gjson.String && v.Str != ""
		}
		return true
	})
	if references = references || !typed && ids != nil; references && s.Field == "" {
		s.Field, s.Hint = param, " Clients send the item itself when 'store' is false."
	}
	if references || looked && !whole {
		for _, id := range ids {
			id.Item = true
			s.IDs = append(s.IDs, id)
		}
	}
}

// idFields hold ids of files, and of what files are kept in.
var idFields = []string{"file_id", "file_ids", "vector_store_ids", "container", "container_id", "cachedContent", "cached_content"}

// clientFields hold what the client or the model has made up, in which a name means nothing
// to the provider.
var clientFields = []string{"input", "input_schema", "input_examples", "parameters"}

// fileFields name a file, what files are kept in, a skill, or a spoken answer.
var fileFields = append([]string{"fileUri", "file_uri", "skill_id", "audio"}, idFields...)

// maxDepth is how deep AddFiles and Said look. Each level reads all that is below the level again.
const maxDepth = 256

// AddFiles adds the ids of files, skills and spoken answers. What is nested too deep to be looked
// at counts as an id that nobody knows.
func (s *State) AddFiles(param string, v gjson.Result) { s.addFiles(param, v, 0) }

func (s *State) addFiles(param string, v gjson.Result, depth int) {
	if depth == maxDepth {
		s.IDs = append(s.IDs, StateID{Param: param})
		return
	}
	v.ForEach(func(key, v gjson.Result) bool {
		switch {
		case slices.Contains(idFields, key.Str), key.Str == "skill_id" && !isPublicSkill(v.Str):
			s.Add(param, v)
		case (key.Str == "fileUri" || key.Str == "file_uri") && !isPublic(v.Str):
			s.Add(param, v)
		case key.Str == "audio": // of an earlier answer of Chat Completions
			s.Add(param, v.Get("id"))
		}
		if (v.IsObject() || v.IsArray()) && !slices.Contains(clientFields, key.Str) {
			s.addFiles(param, v, depth+1)
		}
		return true
	})
}

// publicSkills are Anthropic's own
// (https://platform.claude.com/docs/en/build-with-claude/skills-guide).
var publicSkills = []string{"docx", "pdf", "pptx", "xlsx"}

// isPublicSkill reports whether a skill is the vendor's own, for everybody. OpenAI's have a
// prefix (https://developers.openai.com/api/docs/guides/tools-skills).
func isPublicSkill(id string) bool {
	return slices.Contains(publicSkills, id) || strings.HasPrefix(id, "openai-")
}

// isPublic reports whether the address of a file is one that anybody can read. Gemini's own
// files have addresses that take a key (https://ai.google.dev/api/files).
func isPublic(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && u.Scheme == "https" && !strings.HasSuffix(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), "googleapis.com")
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
