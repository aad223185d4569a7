package caddyfile

import (
	"strconv"

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
