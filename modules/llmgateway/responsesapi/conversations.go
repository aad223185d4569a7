package responsesapi

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// maxPage is the length of a page of items, in bytes, above which the page is made shorter.
const maxPage = 4 << 20

// The bounds of OpenAI's API.
const (
	maxNewItems      = 20 // in one request
	maxMetadata      = 16 // pairs
	maxMetadataName  = 64 // bytes, like the next
	maxMetadataValue = 512
)

// conversation is a conversation as the API answers it.
type conversation struct {
	ID        string          `json:"id"`
	Object    string          `json:"object"`
	CreatedAt int64           `json:"created_at"` // seconds since 1970
	Metadata  json.RawMessage `json:"metadata"`
}

// describe returns a conversation as the API answers it, unless err is an error.
func describe(c *storage.Conversation, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return conversation{c.ID, "conversation", int64(c.CreatedAt) / 1000, json.RawMessage(c.Metadata)}, nil
}

// CreateConversation makes a conversation of items.
func (c *Call) CreateConversation() (any, error) {
	if err := c.readBody("items", "metadata"); err != nil {
		return nil, err
	}
	items, err := c.newItems()
	if err != nil {
		return nil, err
	}
	metadata, err := c.metadata()
	if err != nil {
		return nil, err
	}
	return describe(c.Store.NewConversation(c.R.Context(), metadata, items))
}

// conversation returns the conversation of the path, with the size of its items in their place.
func (c *Call) conversation() (*storage.Conversation, error) {
	found, err := c.Store.Conversation(c.R.Context(), c.ID, storage.Measured)
	return found, history.Error(err, "Conversation", c.ID)
}

// items returns items of the conversation, once there is memory for them. A page with too many
// bytes becomes shorter, down to an item and the item after it.
func (c *Call) items(page *storage.ItemPage) ([]string, error) {
	measured := *page
	measured.Measure = true
	found, err := c.Store.Conversation(c.R.Context(), c.ID, measured)
	for err == nil && found.Size > maxPage && measured.Limit > 2 {
		measured.Limit = max(measured.Limit/2, 2)
		found, err = c.Store.Conversation(c.R.Context(), c.ID, measured)
	}
	if err == nil {
		var refused *plugins.Error
		if c.loaded, refused = c.Memory.Hold(c.R.Context(), 4*found.Size); refused != nil { // and their answer
			return nil, refused
		}
		page.Limit = measured.Limit
		found, err = c.Store.Conversation(c.R.Context(), c.ID, *page)
	}
	if err != nil {
		return nil, history.Error(err, "Conversation", c.ID)
	}
	return history.ItemsOf(found), nil
}

// GetConversation answers a conversation without its items.
func (c *Call) GetConversation() (any, error) {
	return describe(c.conversation())
}

// UpdateConversation replaces the metadata of a conversation.
func (c *Call) UpdateConversation() (any, error) {
	if err := c.readBody("metadata"); err != nil {
		return nil, err
	}
	metadata, err := c.metadata()
	if err != nil {
		return nil, err
	}
	if !c.object.Get("metadata").Exists() {
		return nil, translate.Missing("metadata")
	}
	found, err := c.conversation()
	if err != nil {
		return nil, err
	}
	changed, err := c.Store.SetMetadata(c.R.Context(), found, metadata)
	return describe(changed, history.Error(err, "Conversation", c.ID))
}

// DeleteConversation deletes a conversation with its items.
func (c *Call) DeleteConversation() (any, error) {
	found, err := c.conversation()
	if err != nil {
		return nil, err
	}
	if err := c.Store.DeleteConversation(c.R.Context(), found); err != nil {
		return nil, err
	}
	return deletion{c.ID, "conversation.deleted", true}, nil
}

// ListConversation lists items of a conversation.
func (c *Call) ListConversation() (any, error) {
	page, err := c.readPage()
	if err != nil {
		return nil, err
	}
	page.Limit++ // to see whether there are more
	items, err := c.items(&page)
	if err != nil {
		return nil, err
	}
	answer, _ := history.List(items, storage.ItemPage{Limit: page.Limit - 1})
	return answer, nil
}

// AddToConversation adds items to a conversation.
func (c *Call) AddToConversation() (any, error) {
	if err := c.readBody("items"); err != nil {
		return nil, err
	}
	items, err := c.newItems()
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, plugins.Invalid("items", "Invalid 'items': 1 to %d items are expected.", maxNewItems)
	}
	to, err := c.conversation()
	if err != nil {
		return nil, err
	}
	added, err := c.Store.AddItems(c.R.Context(), to, items)
	if err != nil {
		return nil, history.Error(err, "Conversation", c.ID)
	}
	page, _ := history.List(added, storage.AllItems)
	return page, nil
}

// GetConversationItem answers an item.
func (c *Call) GetConversationItem() (any, error) {
	items, err := c.items(&storage.ItemPage{Limit: 1, Only: c.Item})
	switch {
	case err != nil:
		return nil, err
	case len(items) == 0:
		return nil, history.Error(history.ErrNotFound, "Item", c.Item)
	}
	return []byte(items[0]), nil
}

// DeleteConversationItem removes an item from a conversation.
func (c *Call) DeleteConversationItem() (any, error) {
	from, err := c.conversation()
	if err != nil {
		return nil, err
	}
	return describe(from, history.Error(c.Store.RemoveItem(c.R.Context(), from, c.Item), "Item", c.Item))
}

// newItems returns the items of the body.
func (c *Call) newItems() ([]string, error) {
	list := c.object.Get("items")
	if list.Type == gjson.Null {
		return nil, nil
	}
	elements := list.Array()
	if !list.IsArray() || len(elements) > maxNewItems {
		return nil, plugins.Invalid("items", "Invalid 'items': an array of up to %d items is expected.", maxNewItems)
	}
	var items []string
	for i, item := range elements {
		if !item.IsObject() || item.Get("type").Str == "" && item.Get("role").Str == "" {
			return nil, plugins.Invalid(fmt.Sprintf("items[%d]", i), "Invalid 'items[%d]': an object with a 'type' or a 'role' is expected.", i)
		}
		items = append(items, item.Raw)
	}
	return items, nil
}

// metadata returns the metadata of the body, an empty object if there is none.
func (c *Call) metadata() (string, error) {
	v := c.object.Get("metadata")
	if v.Type == gjson.Null {
		return "{}", nil
	}
	valid, pairs := v.IsObject(), 0
	v.ForEach(func(name, value gjson.Result) bool {
		pairs++
		valid = valid && value.Type == gjson.String && len(name.Str) <= maxMetadataName && len(value.Str) <= maxMetadataValue
		return valid
	})
	if !valid || pairs > maxMetadata {
		return "", plugins.Invalid("metadata", "Invalid 'metadata': an object of up to %d strings is expected, with names of up to %d bytes and values of up to %d.",
			maxMetadata, maxMetadataName, maxMetadataValue)
	}
	return v.Raw, nil
}
