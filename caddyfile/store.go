package caddyfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/llmapp"
)

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

// modules returns the names of the modules in a namespace.
func modules(namespace string) (names []string) {
	for _, m := range caddy.GetModules(namespace) {
		names = append(names, m.ID.Name())
	}
	return names
}

// separateModules are the modules that the binary of a release does not have.
var separateModules = []string{"clickhouse", "redis"}

// toBuild returns how to build a binary with the module that the arguments name, "" if they name
// none of separateModules.
func toBuild(args []string) string {
	for _, arg := range args {
		if slices.Contains(separateModules, arg) {
			return fmt.Sprintf("; %s needs a binary of `xcaddy build --with %s --with %[2]s/storage/%[1]s`", arg, llmapp.ModulePath)
		}
	}
	return ""
}

func isModule(id string) bool {
	_, err := caddy.GetModule(id)
	return err == nil
}

// segment returns a dispenser of a line and its block for another parser. The tokens of the line get the
// position of the token at.
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
