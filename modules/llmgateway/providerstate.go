package llmgateway

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmgateway/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// storedState is what a request refers to that a provider keeps.
type storedState struct {
	field string // the first field that only the provider who keeps it can serve, "" if there is none
	hint  string // what else the client can do
	ids   []storedID
}

// storedID is an id that a provider gave out, and the parameter that has it.
type storedID struct {
	param, id string
	item      bool // the id is that of an item, which no translation sends
}

// findStoredState looks through a request. Of a field that stands twice it reads both:
// libraries differ in which they take.
func findStoredState(d plugins.Dialect, body []byte) (found storedState) {
	gjson.Parse(plugins.View(body)).ForEach(func(key, v gjson.Result) bool {
		switch name := key.Str; {
		case d.OfResponses() && name == "input":
			found.addItems(v)
		case d.OfResponses() && (name == "previous_response_id" || name == "conversation" || name == "prompt"):
			if v.Type == gjson.Null || v.Type == gjson.False {
				break
			}
			if found.field == "" {
				found.field, found.hint = name, ""
			}
			found.ids = append(found.ids, storedID{param: name, id: v.Str + v.Get("id").Str})
		case name == "container": // of Anthropic's code execution
			found.ids = appendIDs(found.ids, name, v)
			if id := v.Get("id"); id.Type == gjson.String {
				found.ids = append(found.ids, storedID{param: name, id: id.Str})
			}
			found.addFiles(name, v)
		case name == "messages" || name == "tools" || name == "images" || name == "mask":
			found.addFiles(name, v)
		}
		return true
	})
	return found
}

func (s *storedState) addItems(input gjson.Result) {
	i := 0
	input.ForEach(func(_, item gjson.Result) bool {
		s.addItem(fmt.Sprintf("input[%d]", i), item)
		i++
		return true
	})
}

// addItem adds what a provider looks up for an item: what its id refers to, unless the item
// has the content itself, and files.
func (s *storedState) addItem(param string, item gjson.Result) {
	var ids []storedID
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
	if references = references || !typed && ids != nil; references && s.field == "" {
		s.field, s.hint = param, " Clients send the item itself when 'store' is false."
	}
	if references || looked && !whole {
		for _, id := range ids {
			id.item = true
			s.ids = append(s.ids, id)
		}
	}
	s.addFiles(param, item)
}

// idFields hold ids of files, and of what files are kept in.
var idFields = []string{"file_id", "file_ids", "vector_store_ids", "container", "container_id"}

// clientFields hold what the client or the model has made up, in which a name means nothing
// to the provider.
var clientFields = []string{"input", "input_schema", "input_examples", "parameters"}

// idFieldSigns are what a text has that names a file, a skill or a spoken answer, or has an
// escape that hides a name. They begin with bytes that are rare in prose, which strings.Contains is fast at.
var idFieldSigns = []string{`"file_id`, `"vector_store_ids`, `"container`, `"skill_id`, `"audio"`, `\u`}

// addFiles adds the ids of files, skills and spoken answers, at any depth.
func (s *storedState) addFiles(param string, v gjson.Result) {
	if !slices.ContainsFunc(idFieldSigns, func(sign string) bool { return strings.Contains(v.Raw, sign) }) {
		return
	}
	v.ForEach(func(key, v gjson.Result) bool {
		switch {
		case slices.Contains(idFields, key.Str), key.Str == "skill_id" && !isPublicSkill(v.Str):
			s.ids = appendIDs(s.ids, param, v)
		case key.Str == "audio": // of an earlier answer of Chat Completions
			s.ids = appendIDs(s.ids, param, v.Get("id"))
		}
		if (v.IsObject() || v.IsArray()) && !slices.Contains(clientFields, key.Str) {
			s.addFiles(param, v)
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

// appendIDs appends the strings that v is or has.
func appendIDs(ids []storedID, param string, v gjson.Result) []storedID {
	for _, id := range v.Array() {
		if id.Type == gjson.String {
			ids = append(ids, storedID{param: param, id: id.Str})
		}
	}
	return ids
}

// targetsWithState returns the targets that may have kept what the request refers to: all, if
// it refers to nothing, or else the one account at which the client's calls of the
// one target end up, the organisation's own before that of the platform.
func (c *call) targetsWithState(targets []routing.Target) ([]routing.Target, error) {
	field := c.stored.field
	if field == "" {
		return targets, nil
	}
	for _, t := range targets {
		if t.Name() != targets[0].Name() {
			return nil, plugins.Unsupported(field, "'%s' names what one provider keeps: name that one alone, as in '%s'.%s",
				field, targets[0].Name(), c.stored.hint)
		}
	}
	return targets[:1], nil
}

// shares reports whether others than the organisation use the account.
func (c *call) shares(account *llmapp.Account) bool {
	return c.h.site.App.Shares(c.exchange.Record.Org, account)
}

// allow refuses what an organisation must not ask of an account: models that the key may not
// call; where credits pay, a field beside the documented schema and an answer that is not
// there to be charged; and where others use the account, what it keeps for them.
func (c *call) allow(t routing.Target) error {
	if err := c.checkModels(t.Account.Label); err != nil {
		return err
	}
	if c.bounded(t) {
		if c.dialect.OfResponses() {
			if err := translate.Validate(c.body); err != nil {
				return err
			}
		}
		if err := c.demanded().Check(); err != nil {
			return err
		}
	}
	return c.allowStored(t.Account)
}

// allowStored refuses what an account that others use may keep for them.
func (c *call) allowStored(account *llmapp.Account) error {
	if len(c.stored.ids) == 0 || !c.shares(account) {
		return nil
	}
	_, native := account.API.(translate.Native)
	if !native && c.stored.field != "" {
		return nil // nothing is sent: the translation has no place for it
	}
	var ids []string
	for _, named := range c.stored.ids {
		ids = append(ids, named.id)
	}
	given := c.remembered(c.payer(), ids)
	for _, named := range c.stored.ids {
		if (native || !named.item) && given[named.id] == "" && !c.hasRecord(named, account) {
			e := plugins.Unsupported(named.param, "'%s' names what %s keeps, and is not known to be yours: the account is shared with others.%s",
				named.param, account.Label, c.stored.hint)
			if named.param == "previous_response_id" { // clients send the whole conversation then
				e.Code = "previous_response_not_found"
			}
			return e
		}
	}
	return nil
}

// hasRecord reports whether a record proves that the account gave the organisation a
// response: the memory may have been lost. A record that was reported or imported proves
// nothing, because its id is the caller's word.
func (c *call) hasRecord(named storedID, account *llmapp.Account) bool {
	if named.param != "previous_response_id" || named.id == "" {
		return false
	}
	journal, err := c.h.journal()
	if err != nil {
		return false
	}
	r, err := journal.Response(c.ctx, c.exchange.Record.Org, named.id)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		c.h.site.Logger.Error("a response cannot be looked up, and is refused", zap.String("response", named.id), zap.Error(err))
	}
	return err == nil && r.GatewayNode != "" && strings.HasPrefix(r.TargetURL, account.BaseURL)
}

// payer owns the ids that the organisation was given from accounts that it shares,
// whichever key and user it was.
func (c *call) payer() owner { return owner{org: c.exchange.Record.Org} }

// ended remembers what an answer has that a provider who speaks the client's dialect has
// ended: whose its ids are, and what it adds to a conversation. body is that of an object,
// nil for a stream.
func (a *attempt) ended(body []byte) {
	c := a.call
	kept := a.x.Kept.Content(&a.x.Record).Response
	names := c.dialect == plugins.Responses || c.dialect == plugins.Messages ||
		c.dialect == plugins.Chat && (bytes.Contains(body, []byte(`"audio"`)) || bytes.Contains(kept.Data, []byte(`"audio"`)))
	shares := names && c.shares(a.target.Account)
	if !shares && c.state.ConversationID == "" {
		return
	}
	if body == nil {
		body, _ = observe.Transcript(c.dialect).Stored(kept.Type, kept.Data)
	}
	if c.dialect == plugins.Responses {
		a.extend(body)
	}
	if !shares {
		return
	}
	response := a.x.Answer.Info().ResponseID
	var found storedState
	if c.dialect != plugins.Chat { // whose answers cannot be continued by their ids
		found.ids = []storedID{{id: response}}
	}
	for _, id := range gjson.GetManyBytes(body, "output.#.id", "container.id") {
		found.ids = appendIDs(found.ids, "", id)
	}
	found.addFiles("", gjson.ParseBytes(body))
	var ids []string
	for _, named := range found.ids {
		ids = append(ids, named.id)
	}
	c.remember(c.payer(), []byte(response), ids)
}
