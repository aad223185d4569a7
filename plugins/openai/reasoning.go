package openai

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

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
