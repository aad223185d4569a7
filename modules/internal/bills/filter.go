package bills

import (
	"strings"
	"time"

	"github.com/weirhq/weir/internal/reconcile"
	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/storage"
)

// Calls are the terms of a filter for the calls of some providers in a window.
func Calls(providers []string, w reconcile.Window) []string {
	return []string{anyOf("provider", providers), "since=" + w.From.String(), "until=" + w.To.String()}
}

// Link sets in each difference of a report how its calls are found, if there are any.
func Link(r *reconcile.Report) error {
	for i := range r.Differences {
		d := &r.Differences[i]
		terms := Calls(r.Providers, reconcile.Window{From: d.Day, To: d.Day + 1})
		switch {
		case len(d.Names) > 0:
			terms = append(terms, anyOf("model", d.Names))
		case d.Model != "" && d.Condition == "": // no record has the model
			continue
		}
		if d.Account != "" {
			terms = append(terms, anyOf("account", []string{d.Account}))
		}
		if d.Condition != "" {
			terms = append(terms, d.Condition)
		}
		d.Query = "weir query '" + strings.ReplaceAll(strings.Join(terms, " "), "'", `'\''`) + "'"
		filter, err := question.ParseFilter(terms, time.Now())
		if err != nil {
			return err
		}
		d.Filter = storage.AppendJSON(nil, filter)
	}
	return nil
}

// anyOf is the term of a filter for one of some values.
func anyOf(field string, values []string) string {
	terms := make([]string, len(values))
	for i, value := range values {
		terms[i] = field + "=" + question.Quote(value)
	}
	if len(terms) == 1 {
		return terms[0]
	}
	return "(" + strings.Join(terms, " or ") + ")"
}
