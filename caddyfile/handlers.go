package caddyfile

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/position"
	"github.com/weirhq/weir/modules/llmapp"
)

// parseHandler parses a directive that is one handler.
func parseHandler[H any, P interface {
	*H
	caddyhttp.MiddlewareHandler
	caddyfile.Unmarshaler
}](h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h.Next()
	directive := h.Token()
	h.Reset()
	handler := P(new(H))
	if err := handler.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	return handler, checkSite(h, directive, handler)
}

// checkSite notes the line of a handler, and finds the store and the organisation of a handler in the global option
// llm while there is a line to name: when the modules look, there is none.
func checkSite(h httpcaddyfile.Helper, directive caddyfile.Token, handler any) error {
	config := gjson.ParseBytes(caddyconfig.JSON(handler, nil))
	line := []caddyfile.Token{directive}
	if provider := config.Get("provider").Str; provider != "" {
		line = append(line, caddyfile.Token{Text: provider})
	}
	position.NoteDirective(line)
	global, ok := h.Option("llm").(httpcaddyfile.App)
	if !ok {
		return nil
	}
	var app llmapp.App
	if err := json.Unmarshal(global.Value, &app); err != nil {
		return err
	}
	store, org := cmp.Or(config.Get("store").Str, llmapp.DefaultName), config.Get("org").Str
	at := caddyfile.NewDispenser([]caddyfile.Token{directive})
	at.Next()
	if config.Get("store").Exists() && app.Stores[store] == nil {
		return at.Errf("%s: no store is named %s; the global option llm has %s", directive.Text, store, names(app.Stores))
	}
	switch o := app.Organisations[org]; {
	case org == "" || org == llmapp.DefaultName:
	case o == nil:
		return at.Errf("%s: no org is named %s; the global option llm has %s", directive.Text, org, names(app.Organisations))
	case cmp.Or(o.Store, llmapp.DefaultName) != store:
		return at.Errf("%s: org %s keeps its records in the store %s; name that with the option store", directive.Text, org, cmp.Or(o.Store, llmapp.DefaultName))
	}
	return nil
}

// names lists the keys of what is configured.
func names[T any](configured map[string]T) string {
	if len(configured) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(configured)), ", ")
}
