package anthropic

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// fitting is a body of Messages that becomes one that a model takes. Clients choose the kind of thinking
// by the name of the model, which is another one where an alias or a fallback leads to a later or earlier
// Claude: each refuses what the other wants
// (https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking).
type fitting struct {
	*model
	asked    *plugins.Object
	body     []byte
	warnings []string
}

func (f *fitting) warn(field, done string) { f.warnings = append(f.warnings, field+": "+done) }

func (f *fitting) drop(field, done string) {
	f.body = plugins.DeleteField(f.body, field)
	f.warn(field, done)
}

// thinking gives the model thinking of a kind that it has.
func (f *fitting) thinking() {
	asked := f.asked.Get("thinking")
	switch kind := asked.Get("type").Str; {
	case !asked.Exists():
	case !f.Reasoning && kind != "disabled", kind == "disabled" && f.Has(AlwaysThinks):
		f.drop("thinking", translate.ModelRefuses)
	case kind == "enabled" && f.Budget.Min == 0:
		f.body, _ = sjson.SetRawBytes(f.body, "thinking", []byte(`{"type":"adaptive","display":"summarized"}`)) // an object, and a plain path
		f.warn("thinking", "not limited in tokens by the model, sent as adaptive")
	case kind == "adaptive" && f.Budget.Min > 0 && !f.Has(adapts):
		f.count()
	}
}

// count replaces adaptive thinking by thinking of a number of tokens, where that is possible.
func (f *fitting) count() {
	limit := f.asked.Get("max_tokens").Int()
	choice := f.asked.Get("tool_choice").Get("type").Str
	effort := f.asked.Get("output_config").Get("effort").Str
	if effort == "" {
		effort = "high" // https://platform.claude.com/docs/en/build-with-claude/effort
	}
	budget := max(f.Budget.Min, (translate.Reasoning{Effort: effort}).Budget(limit))
	if f.Budget.Max > 0 {
		budget = min(budget, f.Budget.Max)
	}
	temperature := f.asked.Get("temperature")
	switch {
	case limit <= budget, choice == "any", choice == "tool", temperature.Type == gjson.Number && temperature.Num != 1, f.resumes():
		f.drop("thinking", "not adaptive with the model, and not possible otherwise here, left out")
	default:
		f.body, _ = sjson.SetRawBytes(f.body, "thinking", []byte(`{"type":"enabled","budget_tokens":`+strconv.FormatInt(budget, 10)+`}`)) // an object, and a plain path
		f.warn("thinking", "not adaptive with the model, sent as "+strconv.FormatInt(budget, 10)+" tokens")
	}
}

// resumes reports whether the model goes on after calls that it made without thinking: "A final
// assistant message must start with a thinking block."
func (f *fitting) resumes() bool {
	messages := f.asked.Get("messages").Array()
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Get("role").Str == "assistant" {
			first := messages[i].Get("content.0.type").Str
			return messages[i].Get(`content.#(type=="tool_use")`).Exists() && first != "thinking" && first != "redacted_thinking"
		}
	}
	return false
}

// sampling leaves out what the model does not take.
func (f *fitting) sampling() {
	for _, field := range []string{"temperature", "top_p", "top_k"} {
		if v := f.asked.Get(field); !f.Temperature && v.Type == gjson.Number && v.Num != 1 {
			f.drop(field, translate.ModelRefuses)
		}
	}
}

// effort leaves the effort out where the model has no levels of it.
func (f *fitting) effort() {
	if len(f.Efforts) == 0 && f.asked.Get("output_config").Get("effort").Exists() {
		f.body, _ = sjson.DeleteBytes(f.body, "output_config.effort") // an object, and a plain path
		f.warn("output_config.effort", translate.ModelRefuses)
	}
}

// systemTurns lets the user say what the system says within the conversation, where only later
// models let the system do so
// (https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages).
func (f *fitting) systemTurns() {
	marks := bytes.Count(f.body, []byte(`"system"`)) // looking for it takes a fraction of the time of reading the conversation
	if f.asked.Get("system").Exists() {
		marks--
	}
	if marks == 0 {
		return
	}
	var messages []string
	changed := false
	for _, m := range f.asked.Get("messages").Array() {
		raw := m.Raw
		if m.Get("role").Str == "system" {
			changed = true
			if raw = asUser(m.Get("content")); raw == "" {
				continue
			}
		}
		messages = append(messages, raw)
	}
	if changed {
		f.body, _ = sjson.SetRawBytes(f.body, "messages", []byte("["+strings.Join(messages, ",")+"]")) // an object, and a plain path
		f.warn("messages", "what the system says within the conversation, sent as the user's, because the model takes no other")
	}
}

// asUser returns a message of the user with the texts of the system, "" if it has none.
func asUser(content gjson.Result) string {
	texts := content.Get("#.text").Array()
	if content.Type == gjson.String {
		texts = []gjson.Result{content}
	}
	var blocks []string
	for _, text := range texts {
		if strings.TrimSpace(text.Str) != "" {
			blocks = append(blocks, string(plugins.AppendString([]byte(`{"type":"text","text":`), translate.AsSystem(text.Str)))+"}")
		}
	}
	if blocks == nil {
		return ""
	}
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + "]}"
}
