package openai

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// NeedsResponses reports whether a model refuses a request of Chat Completions that it takes in
// Responses: the models since GPT-5.4 call no functions there while they reason, which those since
// GPT-5.5 do unless told otherwise (https://github.com/openai/openai-openapi/issues/541,
// https://github.com/BerriAI/litellm/pull/34569). Models that reason take no stop sequences before
// GPT-5.5 (https://github.com/BerriAI/litellm/pull/28650), which a translation to Responses enforces.
func NeedsResponses(t translate.Target, body *plugins.Object) bool {
	c := t.Capabilities
	if c.Described() && !c.Reasoning || strings.HasPrefix(t.Model, "gpt-35-") { // which is Azure's name for GPT-3.5
		return false
	}
	var major, minor int
	_, _ = fmt.Sscanf(t.Model, "gpt-%d.%d", &major, &minor) // what is no such name has no version
	effort := body.Get("reasoning_effort")
	switch version := 100*major + minor; {
	case version < 505 && c.Described() && len(body.Get("stop").Array()) > 0:
		return true
	case version < 504 || !body.Get("tools").Get("0").Exists():
		return false
	case effort.Type == gjson.Null: // or absent
		return version > 504
	default:
		return effort.Str != "none"
	}
}

// The encrypted_content of our reasoning items is the provider's whole item,
// for a provider may refuse what it encrypted under another id or with another
// summary.

// seal sets the item that the provider wants back, if it will.
func (d *decoder) seal(key int, item gjson.Result) {
	if item.Get("encrypted_content").Str != "" {
		d.a.Seal(key, item.Raw)
	}
}

// replay returns the item to send for an item of the client: the provider's own, or the
// client's if its reasoning is not encrypted. It is "" for an item of another provider.
func replay(r *translate.ReasoningItem, sent string) string {
	switch sealed := gjson.Parse(r.EncryptedContent); {
	case plugins.ValidJSON([]byte(r.EncryptedContent)) && sealed.Get("type").Str == "reasoning":
		return r.EncryptedContent
	case r.EncryptedContent == "" && len(r.Content) > 0:
		return sent
	}
	return ""
}
