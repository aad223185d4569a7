package chat

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// webSearch has the fields by which vendors search the web in place of the hosted tool
// web_search.
type webSearch struct {
	WebSearchOptions *searchOptionsObject `json:"web_search_options,omitempty"`
	Plugins          []plugin             `json:"plugins,omitempty"` // OpenRouter's
}

type searchOptionsObject struct {
	SearchContextSize string `json:"search_context_size,omitempty"`
}

type plugin struct {
	ID string `json:"id"`
}

// setSearch translates the web search. Domains that cannot be told to the
// provider change what it may read, and are refused.
func (r *request) setSearch(a attempt, t *translate.Tool) error {
	if len(gjson.GetBytes(t.Raw, "filters.allowed_domains").Array()) > 0 {
		return plugins.Unsupported(t.Param+".filters", "The provider's web search takes no filters.")
	}
	switch a.vendor.tools.search {
	case searchOptions:
		r.WebSearchOptions = &searchOptionsObject{gjson.GetBytes(t.Raw, "search_context_size").Str}
	case searchPlugin:
		r.Plugins = []plugin{{"web"}}
	}
	return nil
}

// forceSearch makes the model search, if the vendor can.
func (r *request) forceSearch(a attempt) error {
	if a.vendor.tools.search == searchPlugin && r.Plugins != nil {
		return nil
	}
	return plugins.Unsupported("tool_choice", "The provider's models cannot be made to use '%s'.", a.request.ToolChoice.Type)
}
