package caddyfile

import (
	"math"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/dustin/go-humanize"

	"github.com/weirhq/weir/modules/llmapp"
)

// parseApp parses the global option. Syntax:
//
//	llm {
//		store [<name>] <backend> [<args...>] {
//			retention         <duration>
//			content_retention <duration>
//			max_journal       <size>
//			sync
//			otlp <endpoint> {
//				header <name> <value>
//				content
//			}
//			<the backend's own subdirectives>
//		}
//		key <secret> [<scopes...>]
//		provider <label> [<kind>] {
//			<see parseProvider>
//		}
//		alias <name> <models...>
//		org <name> {
//			store    <name>
//			key      <secret> [<scopes...>]
//			provider <label> [<kind>] {
//				...
//			}
//			credits <dollars>
//		}
//		request_memory <size>
//		header_prefix  <prefixes...>
//		property_names <names...>
//		catalog        <file>
//		queries        <running> [<of one key>]
//		secret         <secret>
//	}
//
// `key` outside of an `org` belongs to the organisation `default`.
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	d.Next() // consume option name
	if existing != nil {
		return nil, d.Err("llm is configured already; put everything into one block")
	}
	if d.NextArg() {
		return nil, d.ArgErr()
	}
	app := new(llmapp.App)
	for d.NextBlock(0) {
		switch d.Val() {
		case "store":
			if err := parseStore(d, app); err != nil {
				return nil, err
			}
		case "key":
			key, err := parseKey(d)
			if err != nil {
				return nil, err
			}
			app.Keys = append(app.Keys, key)
		case "provider":
			provider, err := parseProvider(d, false)
			if err != nil {
				return nil, err
			}
			app.Providers = append(app.Providers, provider)
		case "alias":
			if err := parseAlias(d, app); err != nil {
				return nil, err
			}
		case "org":
			if err := parseOrg(d, app); err != nil {
				return nil, err
			}
		case "request_memory":
			var size string
			if !d.AllArgs(&size) {
				return nil, d.ArgErr()
			}
			bytes, err := humanize.ParseBytes(size)
			if err != nil || bytes == 0 || bytes > math.MaxInt64 {
				return nil, d.Errf("request_memory '%s': want a size like 256MiB", size)
			}
			app.RequestMemory = int64(bytes)
		case "header_prefix":
			args := d.RemainingArgs()
			if len(args) == 0 {
				return nil, d.ArgErr()
			}
			app.HeaderPrefixes = append(app.HeaderPrefixes, args...)
		case "property_names":
			args := d.RemainingArgs()
			if len(args) == 0 {
				return nil, d.ArgErr()
			}
			app.PropertyNames = append(app.PropertyNames, args...)
		case "queries":
			if err := parseQueries(d, app); err != nil {
				return nil, err
			}
		case "secret":
			if !d.AllArgs(&app.SecretText) {
				return nil, d.ArgErr()
			}
		case "catalog":
			if !d.AllArgs(&app.CatalogFile) {
				return nil, d.ArgErr()
			}
		default:
			return nil, d.Errf("unrecognized llm option '%s'", d.Val())
		}
	}
	return httpcaddyfile.App{Name: "llm", Value: caddyconfig.JSON(app, nil)}, nil
}

func parseQueries(d *caddyfile.Dispenser, app *llmapp.App) error {
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 {
		return d.ArgErr()
	}
	for i, n := range []*int{&app.Queries, &app.QueriesPerKey}[:len(args)] {
		var err error
		if *n, err = strconv.Atoi(args[i]); err != nil || *n < 1 {
			return d.Errf("queries '%s': want how many run at the same time, a number from 1", args[i])
		}
	}
	return nil
}

func parseKey(d *caddyfile.Dispenser) (*llmapp.Key, error) {
	args := d.RemainingArgs()
	if len(args) == 0 || args[0] == "" {
		return nil, d.ArgErr()
	}
	return &llmapp.Key{Secret: args[0], Scopes: args[1:]}, nil
}

func parseOrg(d *caddyfile.Dispenser, app *llmapp.App) error {
	var name string
	if !d.AllArgs(&name) {
		return d.ArgErr()
	}
	if app.Organisations[name] != nil {
		return d.Errf("org %s is configured already", name)
	}
	org := new(llmapp.Organisation)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch d.Val() {
		case "store":
			if !d.AllArgs(&org.Store) {
				return d.ArgErr()
			}
		case "key":
			key, err := parseKey(d)
			if err != nil {
				return err
			}
			org.Keys = append(org.Keys, key)
		case "provider":
			provider, err := parseProvider(d, true)
			if err != nil {
				return err
			}
			org.Providers = append(org.Providers, provider)
		case "credits":
			if !d.AllArgs(&org.Credits) {
				return d.ArgErr()
			}
		default:
			return d.Errf("unrecognized org option '%s'", d.Val())
		}
	}
	if app.Organisations == nil {
		app.Organisations = make(map[string]*llmapp.Organisation)
	}
	app.Organisations[name] = org
	return nil
}

// parseStore parses a store. What its block has beyond the options of every
// store is the backend's, which reads it as if they stood in a block of its own.
func parseStore(d *caddyfile.Dispenser, app *llmapp.App) error {
	line := d.Token()
	args := d.RemainingArgs()
	if len(args) == 0 {
		return d.ArgErr()
	}
	name := "default"
	if !isBackend(args[0]) && len(args) > 1 {
		name, args = args[0], args[1:]
	}
	backend := args[0]
	if !isBackend(backend) {
		return d.Errf("unknown storage backend '%s'", backend)
	}
	if app.Stores[name] != nil {
		return d.Errf("store %s is configured already", name)
	}

	store := new(llmapp.StoreConfig)
	var guest []caddyfile.Token
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch d.Val() {
		case "retention":
			if err := parseDuration(d, &store.Retention); err != nil {
				return err
			}
		case "content_retention":
			if err := parseDuration(d, &store.ContentRetention); err != nil {
				return err
			}
		case "max_journal":
			var size string
			if !d.AllArgs(&size) {
				return d.ArgErr()
			}
			bytes, err := humanize.ParseBytes(size)
			if err != nil {
				return d.Errf("max_journal: %v", err)
			}
			store.MaxJournal = int64(bytes)
		case "sync":
			if d.NextArg() {
				return d.ArgErr()
			}
			store.Sync = true
		case "otlp":
			if store.Export != nil {
				return d.Err("otlp is configured already")
			}
			store.Export = new(llmapp.Export)
			if err := parseExport(d, store.Export); err != nil {
				return err
			}
		default:
			guest = append(guest, d.NextSegment()...)
		}
	}

	dispenser := segment(line, args, guest)
	dispenser.Next()
	module, err := caddyfile.UnmarshalModule(dispenser, "llm.storage."+backend)
	if err != nil {
		return err
	}
	store.StorageRaw = caddyconfig.JSONModuleObject(module, "backend", backend, nil)
	if app.Stores == nil {
		app.Stores = make(map[string]*llmapp.StoreConfig)
	}
	app.Stores[name] = store
	return nil
}

func parseExport(d *caddyfile.Dispenser, to *llmapp.Export) error {
	if !d.AllArgs(&to.Endpoint) {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch d.Val() {
		case "header":
			var name, value string
			if !d.AllArgs(&name, &value) {
				return d.ArgErr()
			}
			if to.Headers == nil {
				to.Headers = make(map[string]string)
			}
			to.Headers[name] = value
		case "content":
			if d.NextArg() {
				return d.ArgErr()
			}
			to.Content = true
		default:
			return d.Errf("unrecognized otlp option '%s'", d.Val())
		}
	}
	return nil
}

func isBackend(name string) bool {
	_, err := caddy.GetModule("llm.storage." + name)
	return err == nil
}

func parseDuration(d *caddyfile.Dispenser, to *caddy.Duration) error {
	option := d.Val()
	var arg string
	if !d.AllArgs(&arg) {
		return d.ArgErr()
	}
	duration, err := caddy.ParseDuration(arg)
	if err != nil {
		return d.Errf("%s: %v", option, err)
	}
	*to = caddy.Duration(duration)
	return nil
}

// segment puts a line and its block together again, at the place of the token
// at, as a dispenser that some other parser can read.
func segment(at caddyfile.Token, line []string, block []caddyfile.Token) *caddyfile.Dispenser {
	var tokens []caddyfile.Token
	add := func(text string) {
		at.Text = text
		tokens = append(tokens, at)
	}
	for _, text := range line {
		add(text)
	}
	if len(block) > 0 {
		add("{")
		tokens = append(tokens, block...)
		at = block[len(block)-1]
		at.Line += 1 + at.NumLineBreaks()
		add("}")
	}
	return caddyfile.NewDispenser(tokens)
}
