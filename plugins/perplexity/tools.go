package perplexity

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/translate"
)

const webSearch = "web_search"

type function struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict,omitempty"`
}

type search struct {
	Type              string    `json:"type"`
	SearchContextSize string    `json:"search_context_size,omitempty"`
	UserLocation      *location `json:"user_location,omitempty"`
	Filters           *filters  `json:"filters,omitempty"`
}

type location struct {
	City    string `json:"city,omitempty"`
	Region  string `json:"region,omitempty"`
	Country string `json:"country,omitempty"`
}

// filters confine a search to domains. A "-" excludes a domain.
type filters struct {
	Domains []string `json:"search_domain_filter"`
}

// choice is the tool that must be called: a name, or the type of a hosted tool.
type choice struct {
	Type string `json:"type,omitempty"`
	Name string `json:"name,omitempty"`
}

func isSearch(tool any) bool {
	_, ok := tool.(search)
	return ok
}

func (r *request) setTools(p *translate.Request) error {
	var err error
	if r.Tools, err = translate.MapTools(p, newTool); err != nil {
		return err
	}
	switch c := p.ToolChoice; {
	case c.Name != "":
		r.ToolChoice = choice{Name: c.Name}
	case c.Type != "":
		r.ToolChoice = choice{Type: webSearch}
	case c.Mode != "" && len(r.Tools) > 0:
		r.ToolChoice = c.Mode
	}
	return nil
}

func newTool(t *translate.Tool) (any, error) {
	if !t.Hosted() {
		f := function{Type: "function", Name: t.Name, Strict: t.Strict}
		f.Description, f.Parameters = t.AsFunction()
		return f, nil
	}
	v := gjson.ParseBytes(t.Raw)
	s := search{Type: webSearch, SearchContextSize: v.Get("search_context_size").Str}
	if at := v.Get("user_location"); at.IsObject() {
		s.UserLocation = &location{at.Get("city").Str, at.Get("region").Str, at.Get("country").Str}
	}
	var domains []string
	for _, domain := range v.Get("filters.allowed_domains").Array() {
		domains = append(domains, domain.Str)
	}
	for _, domain := range v.Get("filters.blocked_domains").Array() {
		domains = append(domains, "-"+domain.Str)
	}
	if domains != nil {
		s.Filters = &filters{domains}
	}
	return s, nil
}
