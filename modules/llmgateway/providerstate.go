package llmgateway

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmgateway/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
)

// storedState is what a request refers to that a provider keeps.
type storedState struct {
	field string // the first field that only the provider who keeps it can serve, "" if there is none
	hint  string // what else the client can do
	ids   []storedID
}

// storedID is an id that a provider gave out, and the parameter that has it.
type storedID struct{ param, id string }

// findStoredState looks through a request.
func findStoredState(d plugins.Dialect, body []byte) (found storedState) {
	gjson.Parse(text(body)).ForEach(func(key, v gjson.Result) bool {
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
			found.ids = append(found.ids, storedID{name, v.Str + v.Get("id").Str})
		case name == "container" && v.Type == gjson.String: // of Anthropic's code execution
			found.ids = append(found.ids, storedID{name, v.Str})
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
		param := fmt.Sprintf("input[%d]", i)
		if item.Get("type").Str == "item_reference" {
			if s.field == "" {
				s.field, s.hint = param, " Clients send the item itself when 'store' is false."
			}
			s.ids = append(s.ids, storedID{param, item.Get("id").Str})
		}
		if id := item.Get("id").Str; id != "" && item.Get("type").Str == "reasoning" && item.Get("encrypted_content").Str == "" {
			s.ids = append(s.ids, storedID{param, id}) // the provider looks up what it thought
		}
		s.addFiles(param, item)
		i++
		return true
	})
}

// idFields hold ids of files, and of what files are kept in.
var idFields = []string{"file_id", "file_ids", "vector_store_ids", "container", "container_id"}

// addFiles adds the ids of files, at any depth.
func (s *storedState) addFiles(param string, v gjson.Result) {
	if !strings.Contains(v.Raw, "file_id") && !strings.Contains(v.Raw, "vector_store_ids") && !strings.Contains(v.Raw, "container") {
		return
	}
	v.ForEach(func(key, v gjson.Result) bool {
		if slices.Contains(idFields, key.Str) {
			for _, id := range v.Array() {
				if id.Type == gjson.String {
					s.ids = append(s.ids, storedID{param, id.Str})
				}
			}
		}
		if v.IsObject() || v.IsArray() {
			s.addFiles(param, v)
		}
		return true
	})
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

// shared reports whether the attempt goes to an account of the platform that
// organisations share who pay with credits, and so do not trust each other.
func (a *attempt) shared() bool { return a.call.shared(a.target) }

func (c *call) shared(t routing.Target) bool {
	return c.h.site.App.PaysWithCredits(c.exchange.Record.Org, t.Account)
}

// allow refuses what an organisation with credits must not ask of an account that
// it shares: a field beside the documented schema, what the account keeps for
// others, and an answer that is not there to be charged.
func (c *call) allow(t routing.Target) error {
	if !c.shared(t) {
		return nil
	}
	if c.dialect.OfResponses() {
		if err := translate.Validate(c.body); err != nil {
			return err
		}
	}
	if err := c.checkSpending(); err != nil {
		return err
	}
	var ids []string
	for _, stored := range c.stored.ids {
		ids = append(ids, stored.id)
	}
	given := c.remembered(c.payer(), ids)
	for _, stored := range c.stored.ids {
		if given[stored.id] == "" {
			return plugins.Unsupported(stored.param, "'%s' names what %s keeps, and is not known to be yours: the account is shared with others.%s",
				stored.param, t.Account.Label, c.stored.hint)
		}
	}
	return nil
}

// payer owns the ids that the organisation was given from accounts that it shares,
// whichever key and user it was.
func (c *call) payer() owner { return owner{org: c.exchange.Record.Org} }

// ended remembers what an answer has that a provider who speaks Responses has ended:
// whose its ids are, and what it adds to a conversation. body is that of an object, nil
// for a stream.
func (a *attempt) ended(body []byte) {
	if a.call.dialect != plugins.Responses || !a.shared() && a.call.state.ConversationID == "" {
		return
	}
	if body == nil {
		r := a.x.Kept.Content().Response
		body, _ = observe.Transcript(a.call.dialect).Stored(r.Type, r.Data)
	}
	a.extend(body)
	if !a.shared() {
		return
	}
	response := a.x.Answer.Info().ResponseID
	ids := []string{response}
	for _, id := range gjson.GetBytes(body, "output.#.id").Array() {
		ids = append(ids, id.Str)
	}
	a.call.remember(a.call.payer(), []byte(response), ids)
}
