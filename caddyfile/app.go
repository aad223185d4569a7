package caddyfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/internal/position"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins/catalog"
)

// parseApp parses the global option. Syntax:
//
//	llm {
//		store [<name>] <backend> [<args...>] {
//			retention         <duration>
//			content_retention <duration>
//			max_journal       <size>
//			sync
//			shared <module> [<args...>] {
//				<its own subdirectives>
//			}
//			otlp <endpoint> {
//				header <name> <value>
//				content
//			}
//			<the backend's own subdirectives>
//		}
//		key <secret> [<scopes...>]
//		identity jwt <issuer> {
//			audience <names...>
//			require  <claim> <values...>
//			org      <claim>
//			user     <claim>
//			project  <claim>
//			scopes   <scopes...>
//			role     <claim> <value> <scopes...>
//			members
//			trust_email
//			client_id     <id>
//			client_scopes <scopes...>
//		}
//		provider <label> [<kind>] {
//			<see parseProvider>
//		}
//		alias <name> <models...>
//		budget <name> <dollars> [day|week|month|year|total] {
//			<see parseBudget>
//		}
//		limit <name> <number> <quantity> [<window>] {
//			<see parseLimit>
//		}
//		channel <name> <kind> <address> {
//			<see parseChannel>
//		}
//		alert <name> {
//			<see parseAlert>
//		}
//		bill <name> [<provider>] {
//			<see parseBill>
//		}
//		org <name> {
//			store    <name>
//			key      <secret> [<scopes...>]
//			identity jwt <issuer> {
//				...
//			}
//			provider <label> [<kind>] {
//				...
//			}
//			credits <dollars>
//			budget <name> <dollars> [<window>] {
//				...
//			}
//			limit <name> <number> <quantity> [<window>] {
//				...
//			}
//			channel <name> <kind> <address> {
//				...
//			}
//			alert <name> {
//				...
//			}
//			bill <name> [<provider>] {
//				...
//			}
//			mask <kinds...> {
//				...
//			}
//		}
//		mask <kinds...> {
//			as       mask|pseudonym
//			on_match store|refuse
//			pattern  <expressions...>
//			words    <words...>
//		}
//		request_memory <size>
//		header_prefix  <prefixes...>
//		property_names <names...>
//		catalog        <file>
//		catalog_key    <public key>
//		queries        <running> [<of one key>]
//		secret         <secret>
//		audit_reads    on|off
//	}
//
// `key`, `identity`, `budget`, `limit`, `channel`, `alert` and `bill` outside of an `org` belong to the
// organisation `default`; `mask` holds for all.
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	d.Next() // consume option name
	if existing != nil {
		return nil, d.Err("llm is configured already; put everything into one block")
	}
	if d.NextArg() {
		return nil, d.Errf("llm takes a block of options, not '%s'", d.Val())
	}
	app := new(llmapp.App)
	set := directive.Options{
		"store":          func(d *caddyfile.Dispenser) error { return parseStore(d, app) },
		"key":            parseKey(&app.Keys),
		"identity":       parseIdentity(&app.Identities),
		"provider":       parseProvider(&app.Providers, false),
		"budget":         parseBudget(&app.Budgets),
		"limit":          parseLimit(&app.Budgets),
		"channel":        parseChannel(&app.Channels),
		"alert":          parseAlert(&app.AlertRules),
		"bill":           parseBill(&app.Bills),
		"alias":          func(d *caddyfile.Dispenser) error { return parseAlias(d, app) },
		"org":            func(d *caddyfile.Dispenser) error { return parseOrg(d, app) },
		"mask":           llmapp.MaskOption(&app.Mask),
		"header_prefix":  directive.Texts(&app.HeaderPrefixes),
		"property_names": directive.Texts(&app.PropertyNames),
		"request_memory": directive.Bytes(&app.RequestMemory),
		"queries":        func(d *caddyfile.Dispenser) error { return parseQueries(d, app) },
		"catalog":        directive.Text(&app.CatalogFile),
		"catalog_key":    directive.Text(&app.CatalogKey),
		"secret":         directive.Text(&app.SecretText),
		"audit_reads": func(d *caddyfile.Dispenser) error {
			app.AuditReads = new(bool)
			return directive.Switch(app.AuditReads)(d)
		},
	}
	if err := set.Parse(d, "llm"); err != nil {
		return nil, err
	}
	config := caddyconfig.JSON(app, nil)
	d.Reset()
	d.Next()
	position.Note(config, d.NextSegment())
	return httpcaddyfile.App{Name: "llm", Value: config}, nil
}

func parseQueries(d *caddyfile.Dispenser, app *llmapp.App) error {
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 {
		return d.Err("queries takes how many run at the same time, and behind it how many of one key, as in `queries 8 4`")
	}
	for i, n := range []*int{&app.Queries, &app.QueriesPerKey}[:len(args)] {
		var err error
		if *n, err = strconv.Atoi(args[i]); err != nil || *n < 1 {
			return d.Errf("queries '%s': want how many run at the same time, a number from 1", args[i])
		}
	}
	return nil
}

// parseKey reads a key, its scopes and its options. Errors do not repeat it.
func parseKey(to *[]*llmapp.Key) directive.Option {
	return func(d *caddyfile.Dispenser) error {
		args := d.RemainingArgs()
		if len(args) == 0 || args[0] == "" {
			return d.Err("key takes a secret, as in `key {env.WEIR_KEY}`; an empty one would open the store to everybody")
		}
		key := &llmapp.Key{Secret: args[0], Scopes: args[1:]}
		if err := key.Check(); err != nil {
			return d.Errf("key: %v", err)
		}
		if err := (directive.Options{"mask": llmapp.MaskOption(&key.Mask)}).Parse(d, "key"); err != nil {
			return err
		}
		*to = append(*to, key)
		return nil
	}
}

func parseOrg(d *caddyfile.Dispenser, app *llmapp.App) error {
	args := d.RemainingArgs()
	if len(args) != 1 {
		return d.Err("org takes one name")
	}
	name := args[0]
	if app.Organisations[name] != nil {
		return d.Errf("org %s is given twice", name)
	}
	org := new(llmapp.Organisation)
	set := directive.Options{
		"store":    directive.Text(&org.Store),
		"key":      parseKey(&org.Keys),
		"identity": parseIdentity(&org.Identities),
		"provider": parseProvider(&org.Providers, true),
		"budget":   parseBudget(&org.Budgets),
		"limit":    parseLimit(&org.Budgets),
		"channel":  parseChannel(&org.Channels),
		"alert":    parseAlert(&org.AlertRules),
		"bill":     parseBill(&org.Bills),
		"credits":  parseCredits(&org.Credits),
		"mask":     llmapp.MaskOption(&org.Mask),
	}
	if err := set.Parse(d, "org"); err != nil {
		return err
	}
	if app.Organisations == nil {
		app.Organisations = make(map[string]*llmapp.Organisation)
	}
	app.Organisations[name] = org
	return nil
}

func parseCredits(to *string) directive.Option {
	text := directive.Text(to)
	return func(d *caddyfile.Dispenser) error {
		if err := text(d); err != nil {
			return err
		}
		if _, err := catalog.ParseRate(*to); err != nil {
			return d.Errf("credits takes US dollars as a plain decimal such as 50.00, not '%s'", *to)
		}
		return nil
	}
}

// parseStore parses a store. What its block has beyond the options of every
// store is the backend's, which reads it as if they stood in a block of its own.
func parseStore(d *caddyfile.Dispenser, app *llmapp.App) error {
	line := d.Token()
	name, args := llmapp.DefaultName, d.RemainingArgs()
	if len(args) > 1 && !isModule("llm.storage."+args[0]) && isModule("llm.storage."+args[1]) {
		name, args = args[0], args[1:]
	}
	if len(args) == 0 || !isModule("llm.storage."+args[0]) {
		return d.Errf("store takes a backend out of %s, as in `store sqlite weir.db`, and before it a name if it is not the only store%s",
			strings.Join(modules("llm.storage"), ", "), toBuild(args))
	}
	backend := args[0]
	if app.Stores[name] != nil {
		return d.Errf("store %s is given twice; give one of them another name, as in `store eu sqlite eu.db`", name)
	}

	store := new(llmapp.StoreConfig)
	set := directive.Options{
		"retention":         directive.Duration(&store.Retention),
		"content_retention": directive.Duration(&store.ContentRetention),
		"max_journal":       directive.Bytes(&store.MaxJournal),
		"sync":              directive.Flag(&store.Sync),
		"shared":            func(d *caddyfile.Dispenser) error { return parseShared(d, store) },
		"otlp":              func(d *caddyfile.Dispenser) error { return parseExport(d, &store.Export) },
	}
	module, err := parseModule(d, set, "store", line, args, "llm.storage."+backend)
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

// parseModule reads a block that the options of set share with those of a module,
// which reads the words of line and its own options as if they stood alone. It
// returns nil for a module of which there is nothing but the name.
func parseModule(d *caddyfile.Dispenser, set directive.Options, owner string, at caddyfile.Token, line []string, id string) (caddyfile.Unmarshaler, error) {
	info, _ := caddy.GetModule(id)
	hasOptions := false
	if info.New != nil {
		_, hasOptions = info.New().(caddyfile.Unmarshaler)
	}
	var own []caddyfile.Token
	err := set.ParseWith(d, func(d *caddyfile.Dispenser) error {
		if set.Near(d.Val()) != "" || !hasOptions {
			return set.Unknown(d, owner)
		}
		own = append(own, d.NextSegment()...)
		return nil
	})
	if err != nil || own == nil && len(line) == 1 {
		return nil, err
	}
	dispenser := segment(at, line, own)
	dispenser.Next()
	return caddyfile.UnmarshalModule(dispenser, id)
}

func parseShared(d *caddyfile.Dispenser, store *llmapp.StoreConfig) error {
	const namespace = "llm.shared"
	if store.SharedRaw != nil {
		return d.Err("shared is given twice")
	}
	line := d.Token()
	args := d.RemainingArgs()
	if len(args) == 0 || !isModule(namespace+"."+args[0]) {
		return d.Errf("shared takes a module, as in `shared redis redis://127.0.0.1:6379/0`; this binary has %s%s", cmp.Or(strings.Join(modules(namespace), ", "), "none"), toBuild(args))
	}
	module, err := parseModule(d, directive.Options{}, "shared", line, args, namespace+"."+args[0])
	if err != nil {
		return err
	}
	store.SharedRaw = caddyconfig.JSONModuleObject(module, "module", args[0], nil)
	return nil
}

func parseExport(d *caddyfile.Dispenser, to **llmapp.Export) error {
	if *to != nil {
		return d.Err("otlp is given twice")
	}
	export := new(llmapp.Export)
	if err := directive.Text(&export.Endpoint)(d); err != nil {
		return err
	}
	set := directive.Options{
		"header": func(d *caddyfile.Dispenser) error {
			var name, value string
			if !d.AllArgs(&name, &value) {
				return d.Err("header takes a name and a value")
			}
			if export.Headers == nil {
				export.Headers = make(map[string]string)
			}
			export.Headers[name] = value
			return nil
		},
		"content": directive.Flag(&export.Content),
	}
	*to = export
	return set.Parse(d, "otlp")
}

// modules are the names of those in a namespace.
func modules(namespace string) (names []string) {
	for _, m := range caddy.GetModules(namespace) {
		names = append(names, m.ID.Name())
	}
	return names
}

// separate are the modules that the binary of a release does not have.
var separate = []string{"clickhouse", "redis"}

// toBuild says how to build a binary with the module that arguments name, "" if they name
// none of the separate ones.
func toBuild(args []string) string {
	for _, arg := range args {
		if slices.Contains(separate, arg) {
			return fmt.Sprintf("; %s needs a binary of `xcaddy build --with %s --with %[2]s/storage/%[1]s`", arg, llmapp.ModulePath)
		}
	}
	return ""
}

func isModule(id string) bool {
	_, err := caddy.GetModule(id)
	return err == nil
}

// segment puts a line and its block together again, at the position of the token
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
		last := block[len(block)-1] // which may be quoted, as a brace that ends a block is not
		at.File, at.Line = last.File, last.Line+1+last.NumLineBreaks()
		add("}")
	}
	return caddyfile.NewDispenser(tokens)
}
