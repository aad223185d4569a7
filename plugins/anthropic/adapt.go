package anthropic

import (
	"bytes"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// calls are what Anthropic takes of names and ids
// (https://platform.claude.com/docs/en/api/messages).
var calls = translate.CallRules{Name: 128, ID: 64, Word: true, OneObject: true}

// Adapt implements translate.Adapter: the model gets what it takes, and calls that another provider
// has made get ids that Anthropic takes.
func (Provider) Adapt(d plugins.Dialect, body *plugins.Object, t translate.Target) (adapted []byte, warnings []string) {
	if d != plugins.Messages && d != plugins.CountTokens {
		return body.Data, nil
	}
	f := fitting{model: modelOf(t), asked: body, body: body.Data}
	if t.Capabilities.Described() || f.Has(early) {
		f.thinking()
		f.sampling()
		f.effort()
	}
	if f.Has(systemFirst) {
		f.systemTurns()
	}
	if !body.MayHave("tool_use_id") {
		return f.body, f.warnings
	}
	return fitCalls(f.body, f.warnings)
}

// fitCalls replaces ids of calls that Anthropic refuses, such as "functions.Bash:0", or that it has
// given to another call before.
func fitCalls(body []byte, warnings []string) ([]byte, []string) {
	results := make(map[string]int) // how many results have an id
	for id := range resultIDs(body) {
		results[id.Raw]++
	}
	refused := make(map[string]string) // ids by their JSON
	for raw, n := range results {
		if id := gjson.Parse(raw).Str; n > 1 || !calls.TakesID(id) {
			refused[raw] = id
		}
	}
	if len(refused) == 0 {
		return body, warnings
	}
	return withIDs(body, refused), append(warnings, "messages: ids of calls that the provider refuses, replaced")
}

// withIDs returns a body in which each call of an id, and its result, have an id of their own. ids are
// those to replace, by their JSON.
func withIDs(body []byte, ids map[string]string) []byte {
	changed := make([]byte, 0, len(body))
	seen := make(map[string]int, len(ids)) // how often an id has come
	for {
		begin := bytes.IndexByte(body, '"')
		if begin < 0 {
			return append(changed, body...)
		}
		end := begin + 1
		for end < len(body) && body[end] != '"' {
			if body[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(body))
		changed = append(changed, body[:begin]...)
		if id, ok := ids[string(body[begin:end])]; ok {
			changed = plugins.AppendString(changed, calls.FitID(id, seen[id]/2+1))
			seen[id]++
		} else {
			changed = append(changed, body[begin:end]...)
		}
		body = body[end:]
	}
}

// Adapt implements translate.Adapter.
func (Vertex) Adapt(d plugins.Dialect, body *plugins.Object, t translate.Target) (adapted []byte, warnings []string) {
	t.Model = vertexName(t.Model)
	adapted, warnings = Provider{}.Adapt(d, body, t)
	if body.MayHave("scope") {
		adapted = withoutScopes(adapted)
	}
	return adapted, warnings
}

// withoutScopes returns a body whose marks of prefixes to be cached do not say who shares the cache:
// that is of the beta prompt-caching-scope, which Vertex AI does not have. The cache is as good.
func withoutScopes(body []byte) []byte {
	without := func(_ int, block gjson.Result) string {
		if !block.Get("cache_control.scope").Exists() {
			return block.Raw
		}
		changed, _ := sjson.Delete(block.Raw, "cache_control.scope") // an object, and a plain path, like the next ones
		return changed
	}
	root := gjson.ParseBytes(body)
	for field, change := range map[string]func(int, gjson.Result) string{
		"tools": without, "system": without,
		"messages": func(_ int, m gjson.Result) string {
			content, changed := plugins.MapElements(m.Get("content"), without)
			if !changed {
				return m.Raw
			}
			message, _ := sjson.SetRaw(m.Raw, "content", content)
			return message
		},
	} {
		if list := root.Get(field); list.IsArray() {
			if mapped, changed := plugins.MapElements(list, change); changed {
				body, _ = sjson.SetRawBytes(body, field, []byte(mapped))
			}
		}
	}
	return []byte(without(0, gjson.ParseBytes(body)))
}

// resultIDs yields the ids in the results of calls. Each call has one. To look for the key takes a
// fraction of the time of reading the conversation.
func resultIDs(body []byte) func(yield func(gjson.Result) bool) {
	key := []byte(`"tool_use_id"`)
	return func(yield func(gjson.Result) bool) {
		for {
			i := bytes.Index(body, key)
			if i < 0 {
				return
			}
			body = body[i+len(key):]
			value := bytes.TrimLeft(body, ": \t\r\n")
			if len(value) == 0 || value[0] != '"' {
				continue
			}
			if id := gjson.Parse(plugins.View(value)); !yield(id) {
				return
			}
		}
	}
}

var (
	_ translate.Adapter = Provider{}
	_ translate.Adapter = Vertex{}
)
