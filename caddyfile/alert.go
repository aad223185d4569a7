package caddyfile

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
)

// parseChannel parses where messages about alerts go. Syntax:
//
//	channel <name> webhook|slack|teams|pagerduty|email <address> {
//		secret   <secrets...>
//		url      <url>
//		smtp     <host:port>
//		from     <email>
//		user     <name>
//		password <password>
//	}
func parseChannel(to *[]*llmapp.Channel) directive.Option {
	return func(d *caddyfile.Dispenser) error {
		args := d.RemainingArgs()
		if len(args) != 3 {
			return d.Err("channel takes a name, a kind out of webhook, slack, teams, pagerduty, email, and an address, as in `channel ops slack {env.SLACK_URL}`")
		}
		c := &llmapp.Channel{Name: args[0], Kind: args[1], Address: args[2]}
		*to = append(*to, c)
		return directive.Options{
			"secret":   directive.Texts(&c.Secrets),
			"url":      directive.Text(&c.URL),
			"smtp":     directive.Text(&c.SMTP),
			"from":     directive.Text(&c.From),
			"user":     directive.Text(&c.User),
			"password": directive.Text(&c.Password),
		}.Parse(d, "channel")
	}
}

// parseAlert parses a rule of alerts. Syntax:
//
//	alert <name> {
//		when <total> >|>=|<|<= <number> [over <duration>] [than last_week]
//		for  <attribute> <values...> | <filter as JSON>
//		per  <attribute>
//		to   <channels...>
//	}
func parseAlert(to *[]*llmapp.AlertRule) directive.Option {
	return func(d *caddyfile.Dispenser) error {
		args := d.RemainingArgs()
		if len(args) != 1 {
			return d.Err("alert takes one name; a block says when it fires")
		}
		r := &llmapp.AlertRule{Name: args[0]}
		var taken storage.Filter = storage.All{}
		set := directive.Options{
			"when": func(d *caddyfile.Dispenser) error { return parseWhen(d, r) },
			"for": func(d *caddyfile.Dispenser) error {
				if peek := d.CountRemainingArgs(); peek != 1 {
					return parseFor(d, &taken)
				}
				d.NextArg()
				filter, err := storage.ParseFilter([]byte(d.Val()), storage.RequestResponse)
				if err != nil {
					return d.Errf("for takes an attribute and its values, as in `for project research`, or a filter of the query API as JSON in backticks: %v", err)
				}
				taken = storage.And(taken, filter)
				return nil
			},
			"per": directive.Text(&r.Per),
			"to":  directive.Texts(&r.To),
		}
		if err := set.Parse(d, "alert"); err != nil {
			return err
		}
		if r.Total == "" {
			return d.Errf("alert %s takes `when`, as in `when cost > 100 over 1h`", r.Name)
		}
		if taken != (storage.All{}) {
			r.Filter = json.RawMessage(storage.AppendJSON(nil, taken))
		}
		*to = append(*to, r)
		return nil
	}
}

// parseWhen parses a condition, as in `cost > 100 over 1h`. A `%` after the number is for readers.
func parseWhen(d *caddyfile.Dispenser, r *llmapp.AlertRule) error {
	args := d.RemainingArgs()
	const example = "as in `when cost > 100 over 1h` or `when requests < 0.5 over 1h than last_week`"
	if r.Total != "" {
		return d.Err("when is given twice; make another alert")
	}
	if len(args) < 3 || len(args)%2 == 0 {
		return d.Errf("when takes a total, an operator and a number, and a window, %s", example)
	}
	var err error
	r.Total, r.Operator = args[0], args[1]
	if r.Threshold, err = strconv.ParseFloat(strings.TrimSuffix(args[2], "%"), 64); err != nil {
		return d.Errf("when compares with a number, not '%s', %s", args[2], example)
	}
	for option := range slices.Chunk(args[3:], 2) {
		switch {
		case option[0] == "over" && r.Over == 0:
			over, err := caddy.ParseDuration(option[1])
			if err != nil {
				return d.Errf("over takes a duration such as 1h, not '%s'", option[1])
			}
			r.Over = caddy.Duration(over)
		case option[0] == "than" && r.Than == "":
			r.Than = option[1]
		default:
			return d.Errf("when takes over and than, once each, not '%s %s'; %s", option[0], option[1], example)
		}
	}
	return nil
}
