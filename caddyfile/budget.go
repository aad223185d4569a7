package caddyfile

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// parseBudget parses a budget. Syntax:
//
//	budget <name> <dollars> [day|week|month|year|total|<duration>] {
//		timezone    <name>
//		since       <day or time>
//		for         <attribute> <values...>
//		per         <attribute>
//		trust
//		wait        <duration>
//		cut
//		at          <percent> alert | use <alias> | refuse
//		observe
//		on_unpriced refuse|pass
//	}
func parseBudget(to *[]*llmapp.Budget) directive.Option {
	return func(d *caddyfile.Dispenser) error {
		args := d.RemainingArgs()
		if len(args) < 2 || len(args) > 3 {
			return d.Err("budget takes a name, US dollars, and a window, as in `budget research 500 month`")
		}
		b := &llmapp.Budget{Name: args[0], Limit: args[1]}
		if _, err := catalog.ParseRate(b.Limit); err != nil {
			return d.Errf("budget %s takes US dollars as a plain decimal such as 500.00, not '%s'", b.Name, b.Limit)
		}
		return parseRule(d, "budget", b, args[2:], to)
	}
}

// parseLimit parses a limit of something else than money. Syntax:
//
//	limit <name> <number> requests|tokens|input_tokens|output_tokens|uncached_tokens|concurrent [<window>] {
//		(as of budget)
//	}
func parseLimit(to *[]*llmapp.Budget) directive.Option {
	return func(d *caddyfile.Dispenser) error {
		args := d.RemainingArgs()
		if len(args) < 3 || len(args) > 4 {
			return d.Err("limit takes a name, a number, what it counts, and a window, as in `limit chat 100 requests 1m`")
		}
		b := &llmapp.Budget{Name: args[0], Limit: args[1], Quantity: args[2]}
		if n, err := strconv.ParseInt(b.Limit, 10, 64); err != nil || n < 1 {
			return d.Errf("limit %s takes a whole number from 1, not '%s'", b.Name, b.Limit)
		}
		if !slices.Contains(llmapp.LimitQuantities, b.Quantity) {
			return d.Errf("limit %s counts %s, not '%s'", b.Name, strings.Join(llmapp.LimitQuantities, ", "), b.Quantity)
		}
		return parseRule(d, "limit", b, args[3:], to)
	}
}

// parseRule parses the window and the block of a budget or a limit.
func parseRule(d *caddyfile.Dispenser, name string, b *llmapp.Budget, window []string, to *[]*llmapp.Budget) error {
	if len(window) > 0 {
		b.Window = window[0]
		if _, err := caddy.ParseDuration(b.Window); err != nil && !slices.Contains(llmapp.BudgetWindows, b.Window) {
			return d.Errf("%s %s takes a window out of %s, or a duration such as 24h, not '%s'", name, b.Name, strings.Join(llmapp.BudgetWindows, ", "), b.Window)
		}
	}
	var counted storage.Filter = storage.All{}
	set := directive.Options{
		"timezone":    directive.Text(&b.Timezone),
		"since":       directive.Text(&b.Since),
		"for":         func(d *caddyfile.Dispenser) error { return parseFor(d, &counted) },
		"per":         directive.Text(&b.Per),
		"trust":       directive.Flag(&b.Trust),
		"wait":        directive.Duration(&b.Wait),
		"reserve":     removedReserve,
		"cut":         directive.Flag(&b.Cut),
		"at":          func(d *caddyfile.Dispenser) error { return parseStage(d, &b.Stages) },
		"observe":     directive.Flag(&b.Observe),
		"on_unpriced": directive.Choice(&b.Unpriced, "refuse", "pass"),
	}
	if err := set.Parse(d, name); err != nil {
		return err
	}
	if counted != (storage.All{}) {
		b.Filter = json.RawMessage(storage.AppendJSON(nil, counted))
	}
	*to = append(*to, b)
	return nil
}

// removedReserve refuses an option of 0.1.0.
func removedReserve(d *caddyfile.Dispenser) error {
	return d.Err("reserve is no option any longer: each budget sets aside the most that a call can use. Delete the line. " +
		"The gateway fits calls into what is left by a lower limit of output tokens, and with `wait` a call waits for others to end")
}

// parseStage parses what happens at a part of the limit, as in `80% alert`. At the whole limit,
// calls are refused also if no stage says so.
func parseStage(d *caddyfile.Dispenser, to *[]*llmapp.Stage) error {
	args := d.RemainingArgs()
	if len(args) < 2 {
		return d.Err("at takes a part of the limit and what happens then, as in `at 80% alert`")
	}
	number, isShare := strings.CutSuffix(args[0], "%")
	percent, err := strconv.Atoi(number)
	if err != nil || !isShare || percent < 1 || percent > 100 {
		return d.Errf("at takes a part of the limit from 1%% to 100%%, not '%s'", args[0])
	}
	stage := &llmapp.Stage{At: percent}
	switch then := strings.Join(args[1:], " "); {
	case then == "refuse" && percent == 100:
		return nil
	case then == "alert":
	case args[1] == "use" && len(args) == 3:
		stage.Use = args[2]
	default:
		return d.Errf("at %s takes alert, or use and an alias, and at 100%% also refuse, not '%s'", args[0], then)
	}
	*to = append(*to, stage)
	return nil
}

// fieldsOf are the fields of the filter language by the attributes of budgets.
var fieldsOf = map[string]string{
	"user": "user_id", "session": "session_id", "project": "project", "key": "key_id", "provider": "provider", "model": "model",
}

// parseFor adds to a filter that an attribute has one of some values. A `*` at the end of a
// value stands for all that begin so.
func parseFor(d *caddyfile.Dispenser, to *storage.Filter) error {
	args := d.RemainingArgs()
	if len(args) < 2 {
		return d.Err("for takes an attribute and its values, as in `for project research`")
	}
	property, ofProperty := strings.CutPrefix(args[0], "property.")
	name := cmp.Or(fieldsOf[args[0]], "properties")
	if fieldsOf[args[0]] == "" && (!ofProperty || property == "") {
		return d.Errf("for takes user, session, project, key, provider, model or property.<name>, not '%s'", args[0])
	}
	var either storage.Filter
	for _, value := range args[1:] {
		leaf := &storage.Leaf{Field: storage.LookupField(storage.RequestResponse, name), Key: property, Text: value}
		if begin, cut := strings.CutSuffix(value, "*"); cut {
			leaf.Op, leaf.Text = storage.Like, strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(begin)+"%"
		}
		either = storage.Or(either, leaf)
	}
	*to = storage.And(*to, either)
	return nil
}
