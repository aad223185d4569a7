package caddyfile

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/llmapp"
)

// parseAlias parses a name, the models that it stands for, and how a call chooses among them.
// Syntax:
//
//	alias <name> [<models...>] {
//		strategy order|weight|least_busy|fastest|cheapest
//		split    user|session|key|project|property.<name>
//		shadow   <model> <percent>%
//		model    <name> {
//			arm    <name>
//			weight <number>
//			when   <terms of a filter...>
//			set    <field> <value>
//			limit  <field> <number>
//		}
//	}
func parseAlias(d *caddyfile.Dispenser, app *llmapp.App) error {
	const usage = "alias takes a name and the models that it stands for, as in `alias fast openai/gpt-5-mini`"
	args := d.RemainingArgs()
	if len(args) == 0 {
		return d.Err(usage)
	}
	if _, ok := app.Aliases[args[0]]; ok {
		return d.Errf("alias %s is given twice; name all of its models in one line", args[0])
	}
	a := new(llmapp.Alias)
	for _, model := range args[1:] {
		a.Models = append(a.Models, &llmapp.Choice{Model: model})
	}
	set := directive.Options{
		"strategy": directive.Choice((*string)(&a.Strategy), "order", "weight", "least_busy", "fastest", "cheapest"),
		"split":    directive.Text(&a.Split),
		"shadow":   func(d *caddyfile.Dispenser) error { return parseShadow(d, a) },
		"model":    func(d *caddyfile.Dispenser) error { return parseChoice(d, a) },
	}
	if err := set.Parse(d, "alias "+args[0]); err != nil {
		return err
	}
	if len(a.Models) == 0 {
		return d.Err(usage)
	}
	if app.Aliases == nil {
		app.Aliases = make(map[string]*llmapp.Alias)
	}
	app.Aliases[args[0]] = a
	return nil
}

// parseChoice parses a model of an alias.
func parseChoice(d *caddyfile.Dispenser, a *llmapp.Alias) error {
	args := d.RemainingArgs()
	if len(args) != 1 {
		return d.Err("model takes one name, as in `model openai/gpt-5-mini`; a block says which calls it gets")
	}
	c := &llmapp.Choice{Model: args[0]}
	a.Models = append(a.Models, c)
	var terms []string
	set := directive.Options{
		"arm": directive.Text(&c.Arm),
		"weight": func(d *caddyfile.Dispenser) error {
			c.Weight = new(int)
			return directive.Positive(c.Weight)(d)
		},
		"when": directive.Texts(&terms),
		"set": func(d *caddyfile.Dispenser) error {
			args := d.RemainingArgs()
			if len(args) != 2 {
				return d.Err("set takes a field and its value, as in `set reasoning_effort low`")
			}
			if c.Set == nil {
				c.Set = make(map[string]json.RawMessage)
			}
			c.Set[args[0]] = jsonOf(args[1])
			return nil
		},
		"limit": func(d *caddyfile.Dispenser) error {
			args := d.RemainingArgs()
			var n int64
			if len(args) == 2 {
				n, _ = strconv.ParseInt(args[1], 10, 64) // 0 is refused
			}
			if n < 1 {
				return d.Err("limit takes a field and a number of 1 or more, as in `limit max_tokens 4000`")
			}
			if c.Limit == nil {
				c.Limit = make(map[string]int64)
			}
			c.Limit[args[0]] = n
			return nil
		},
	}
	err := set.Parse(d, "model "+c.Model)
	c.When = strings.Join(terms, " ")
	return err
}

// parseShadow parses a model that gets a share of the calls, too.
func parseShadow(d *caddyfile.Dispenser, a *llmapp.Alias) error {
	args := d.RemainingArgs()
	if len(args) == 2 {
		percent, err := strconv.ParseFloat(strings.TrimSuffix(args[1], "%"), 64)
		if err == nil && strings.HasSuffix(args[1], "%") && percent > 0 && percent <= 100 {
			a.Shadows = append(a.Shadows, &llmapp.Shadow{Model: args[0], Share: percent / 100})
			return nil
		}
	}
	return d.Err("shadow takes a model and a part of the calls, as in `shadow anthropic/claude-haiku-4-5 5%`")
}

// jsonOf returns what stands for a value in JSON: itself if it is JSON, else a text.
func jsonOf(value string) json.RawMessage {
	if json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	text, _ := json.Marshal(value) // a text is always valid
	return text
}
