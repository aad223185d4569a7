package bound

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
)

// Request is what is read of a request to bound its cost.
type Request struct {
	Dialect plugins.Dialect
	Fields
	// Form says that fields whose names end in [] may stand several times.
	Form bool
}

// Fields are those of a request. Those of a JSON object are a *plugins.Object.
type Fields interface {
	// Get returns a field.
	Get(name string) gjson.Result
	// Names calls do with the name of each field, until do returns false.
	Names(do func(name string) bool)
}

// JSON is the Request of a body that is a JSON object.
func JSON(d plugins.Dialect, body *plugins.Object) Request {
	return Request{Dialect: d, Fields: body}
}

// OutputLimit returns the limit of output tokens that the request sets, 0 for none. Vendors
// differ in which of several fields they obey: the highest counts. They also differ in what
// they make of numbers in strings and beyond all bounds, and servers of Chat Completions in what
// they make of 0: such a field limits nothing.
func (r Request) OutputLimit() (limit int64, err error) {
	if r.Dialect == plugins.GenerateContent {
		return r.geminiOutputLimit(), nil
	}
	unlimited := false
	for _, field := range observe.OutputLimits(r.Dialect) {
		value := r.Get(field)
		if value.Type == gjson.Null {
			continue
		}
		if value.Type == gjson.Number && value.Num < 0 {
			return 0, plugins.Invalid(field, "Invalid '%s': integer below minimum value. Expected a value >= 0, but got %s instead.", field, value.Raw).
				WithCode("integer_below_min_value")
		}
		unlimited = unlimited || value.Type != gjson.Number || value.Num > math.MaxInt32 || r.Dialect.OfChat() && value.Int() == 0
		limit = max(limit, value.Int(), 1)
	}
	if unlimited {
		return 0, nil
	}
	return limit, nil
}

// maxAnswers is how many answers one call can ask for, OpenAI's own limit.
const maxAnswers = 128

// Answers returns how many answers the request asks for. Completions gives each prompt, a text or
// a list of tokens, its answers. Gemini takes two spellings of a field, and the last of several:
// the highest number counts.
func (r Request) Answers() int64 {
	if r.Dialect == plugins.GenerateContent {
		answers := int64(1)
		r.geminiConfigs("candidatecount", func(values []gjson.Result) {
			for _, v := range values {
				answers = max(answers, v.Int())
			}
		})
		return min(answers, maxAnswers)
	}
	if !r.Dialect.OfChat() {
		return 1
	}
	texts := int64(1)
	if r.Dialect == plugins.Completions {
		texts = max(prompts(r.Get("prompt")), 1)
	}
	return max(r.Get("n").Int(), r.Get("best_of").Int(), 1) * texts
}

// prompts returns how many texts are in a list of texts or of lists of tokens, 0 for one text.
func prompts(v gjson.Result) (n int64) {
	if !v.IsArray() {
		return 0
	}
	v.ForEach(func(_, prompt gjson.Result) bool {
		if prompt.Type != gjson.Number {
			n++
		}
		return true
	})
	return n
}

// Uses returns an upper bound on what the request makes a model use. bytes is the size of the
// request, and reads what it makes the model read. limit bounds the tokens of an answer, 0 if only
// the request does. ok is false if there is no upper bound.
func (r Request) Uses(m *catalog.Model, reads *Demand, bytes, limit int64) (u plugins.Usage, ok bool) {
	requested, err := r.OutputLimit()
	switch {
	case err != nil, runsAgents(m):
		return u, false
	case r.Dialect == plugins.Embeddings:
		u = reads.Usage(m, UpperBound, bytes, 0, 1)
		u.Output = plugins.Known(0)
	case len(observe.OutputLimits(r.Dialect)) > 0, r.Dialect == plugins.GenerateContent, r.Dialect.OfResponses():
		if limit > 0 {
			requested = limit
		}
		u = reads.Usage(m, UpperBound, bytes, requested, r.Answers())
	default:
		return u, false
	}
	return u, true
}

// Tiers returns the service tiers that the request asks for. Anthropic's fast mode is priced as
// a tier (https://platform.claude.com/docs/en/build-with-claude/fast-mode). Google takes the
// names of fields in two spellings.
func (r Request) Tiers() (tiers []string) {
	for _, field := range []string{"speed", "service_tier", "serviceTier"} {
		if tier := r.Get(field).Str; tier != "" {
			tiers = append(tiers, tier)
		}
	}
	return tiers
}

// ModelFields are fields that name further models. Mistral's agents have models of their own.
var ModelFields = []string{"models", "fallbacks", "agent_id"}

// unboundFields are fields that make a provider charge for something that the model's price
// does not tell: other models, and audio that the provider fetches.
var unboundFields = append([]string{"file_url", "file_id"}, ModelFields...)

// boundFields are fields that tell what a request may cost, beside the limits of its output.
var boundFields = append([]string{"model", "n", "best_of", "service_tier", "tools", agentsField}, ModelFields...)

// Check refuses a request that does not tell what it may cost.
func (r Request) Check() (err error) {
	if _, err = r.OutputLimit(); err != nil {
		return err
	}
	for _, field := range []string{"n", "best_of"} {
		if answers := r.Get(field); answers.Type != gjson.Null && (answers.Int() < 1 || answers.Int() > maxAnswers) {
			return plugins.Invalid(field, "Invalid '%s': want 1 to %d.", field, maxAnswers)
		}
	}
	limits := observe.OutputLimits(r.Dialect)
	bounds := func(name string) bool { return slices.Contains(boundFields, name) || slices.Contains(limits, name) }
	check := func(name string) bool { // some providers put what extra_body has beside it, and some take a name in any case
		if plain := fold(name); plain != name && bounds(plain) {
			err = plugins.Unsupported(name, "Unsupported parameter: '%.64s': write '%s'.", name, plain)
		}
		return err == nil
	}
	r.Names(check)
	r.Get("extra_body").ForEach(func(key, _ gjson.Result) bool {
		if bounds(key.Str) {
			err = plugins.Unsupported("extra_body", "Unsupported parameter: '%s' in 'extra_body': move it out.", key.Str)
		}
		return check(key.Str)
	})
	if err != nil {
		return err
	}
	if enablesAgents(r.Get(agentsField)) {
		return plugins.Invalid(agentsField, "'%[1]s' lets the call run agents without a limit, so that neither credits nor a budget can bound what it costs: leave '%[1]s' out.", agentsField).
			WithCode("model_not_priced")
	}
	return r.Refuse(unboundFields, "has a cost that neither credits nor a budget can bound")
}

// enablesAgents reports whether a value of agentsField may let a call run agents. Of several members of a
// name, in any case, a provider may take any.
func enablesAgents(v gjson.Result) bool {
	if !v.IsObject() {
		return v.Type != gjson.Null && v.Type != gjson.False
	}
	enabled, disabled := false, false
	v.ForEach(func(key, value gjson.Result) bool {
		if fold(key.Str) == "enabled" {
			disabled = value.Type == gjson.False
			enabled = enabled || !disabled
		}
		return true
	})
	return enabled || !disabled
}

// fold returns the name that providers may take a name for which differs in case.
func fold(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || 'A' <= r && r <= 'Z' }) {
		return strings.ToLower(strings.ToUpper(name))
	}
	return name
}

// ToolModels returns the models that tools call, by the names in the tools or by the provider's
// choice. The tools are those of the request and those that items of its input add.
func (r Request) ToolModels() (names []string) {
	var add func(_, tool gjson.Result) bool
	add = func(_, tool gjson.Result) bool {
		called := modelsOf(tool)
		tool.ForEach(func(key, v gjson.Result) bool {
			switch {
			case key.Str == "tools": // of a namespace
				v.ForEach(add)
			case key.Str == "type" && v.Str == "image_generation" && called == nil:
				called = []string{imageModel}
			}
			return true
		})
		names = append(names, called...)
		return true
	}
	r.Get("tools").ForEach(add)
	r.Get("input").ForEach(func(_, item gjson.Result) bool {
		item.ForEach(func(key, tools gjson.Result) bool {
			if key.Str == "tools" {
				tools.ForEach(add)
			}
			return true
		})
		return true
	})
	return names
}

// Refuse refuses fields for a reason, and each field that stands twice, in whatever case:
// libraries differ in which of the two they take.
func (r Request) Refuse(refused []string, reason string) (err error) {
	seen := make(map[string]bool)
	r.Names(func(name string) bool {
		field := fold(name)
		if field == "model_id" { // of the same meaning: watsonx's, and some servers know both
			field = "model"
		}
		switch {
		case slices.Contains(refused, name):
			err = plugins.Unsupported(name, "Unsupported parameter: '%s' %s.", name, reason)
		case seen[field] && !(r.Form && strings.HasSuffix(name, "[]")):
			err = plugins.Invalid(name, "Duplicate parameter: '%.64s' stands twice.", name)
		}
		seen[field] = true
		return err == nil
	})
	return err
}
