package anthropic

import (
	"bytes"
	"strconv"

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
	adapted := body
	results := make(map[string]int) // how many results have an id
	for id := range resultIDs(body) {
		results[id.Raw]++
	}
	replaced := false
	for raw, n := range results {
		if id := gjson.Parse(raw).Str; n > 1 || !calls.TakesID(id) {
			adapted, replaced = withIDs(adapted, raw, id), true
		}
	}
	if replaced {
		warnings = append(warnings, "messages: ids of calls that the provider refuses, replaced")
	}
	return adapted, warnings
}

// withIDs returns a body in which each call of an id, and its result, have an id of their own.
func withIDs(body []byte, raw, id string) []byte {
	var changed []byte
	for i := 0; ; i++ {
		before, after, found := bytes.Cut(body, []byte(raw))
		if changed = append(changed, before...); !found {
			return changed
		}
		changed = plugins.AppendString(changed, calls.FitID(id, i/2+1))
		body = after
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
	var paths []string
	add := func(path string, block gjson.Result) {
		if block.Get("cache_control.scope").Exists() {
			paths = append(paths, path+"cache_control.scope")
		}
	}
	each := func(path string, blocks gjson.Result) {
		for i, block := range blocks.Array() {
			add(path+strconv.Itoa(i)+".", block)
		}
	}
	root := gjson.ParseBytes(body)
	add("", root)
	each("tools.", root.Get("tools"))
	each("system.", root.Get("system"))
	for i, m := range root.Get("messages").Array() {
		each("messages."+strconv.Itoa(i)+".content.", m.Get("content"))
	}
	for _, path := range paths {
		body, _ = sjson.DeleteBytes(body, path) // an object, and a plain path
	}
	return body
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
