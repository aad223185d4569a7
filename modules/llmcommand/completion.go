package llmcommand

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// completionPatience is how long a shell waits for names that the API lists.
const completionPatience = 2 * time.Second

// flagValues are the values of flags that take some of a few.
var flagValues = map[string][]string{
	"columns":  headings(allColumns),
	"fields":   headings(allColumns),
	"scopes":   access.Scopes,
	"trust":    control.Claims,
	"mask":     mask.Kinds,
	"quantity": money.Quantities,
	"window":   money.BudgetWindows,
	"per":      money.Attributes,
}

// listings are where the API lists the values of arguments, by their names in the usage.
var listings = map[string]struct {
	path  string
	items string // path of the list in the data, "@this" for all of it
	name  string // field of the value
	note  string // field that says what the value is, "" for none
}{
	"<id>":      {"/v1/keys?limit=200", "items", "id", "name"},
	"<project>": {projectsPath + "?limit=100", "@this", "name", ""},
	"<budget>":  {"/v1/budgets?limit=200&values=1", "items", "name", ""},
	"<member>":  {membersPath + "?limit=100", "@this", "email", "role"},
	"<rule>":    {alertRulesPath, "items", "name", "condition"},
	"<channel>": {"/v1/alerts/channels", "items", "name", "kind"},
	"<hold>":    {"/v1/holds?limit=200", "items", "id", "reason"},
}

func headings(columns []column) (names []string) {
	for _, c := range columns {
		names = append(names, c.heading)
	}
	return names
}

// completion is a value that a shell may insert, and a note that says what it is, or "".
type completion struct{ value, note string }

// Callers of the gateway choose their names, and the shells expand what they complete: in
// the script for bash `$(command)` would run. Only what every shell takes for a part of one
// word is given to them. In notes, spaces stand for the rest.
var (
	plainWord = regexp.MustCompile(`^[\pL\pN_][\pL\pM\pN._:/@+=,%-]*$`)
	notPlain  = regexp.MustCompile(`[^\pL\pM\pN._:/@+=,%-]+`)
)

// forShells returns completions in cobra's form, without the values that are no plain words.
// All completions pass here.
func forShells(completions []completion) (lines []string) {
	for _, c := range completions {
		if plainWord.MatchString(c.value) {
			lines = append(lines, cobra.CompletionWithDesc(c.value, notPlain.ReplaceAllString(c.note, " ")))
		}
	}
	return lines
}

// completeValues lets shells complete the flags and arguments of a command, and of those below it.
func completeValues(cmd *cobra.Command) {
	for name, values := range flagValues {
		completeFlag(cmd, name, values)
	}
	if cmd.Flags().Lookup("project") != nil {
		_ = cmd.RegisterFlagCompletionFunc("project", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) { // once for each command
			return completeListed(cmd, "<project>")
		})
	}
	if cmd.ValidArgs == nil && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = completeArgument
	}
	for _, below := range cmd.Commands() {
		completeValues(below)
	}
}

// completeFlag offers values of a flag, if the command has it, also after others and a comma.
func completeFlag(cmd *cobra.Command, name string, values []string) {
	if cmd.Flags().Lookup(name) == nil {
		return
	}
	_ = cmd.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) { // once for each flag
		before := typed[:strings.LastIndex(typed, ",")+1]
		var offered []completion
		for _, value := range values {
			offered = append(offered, completion{value: before + value})
		}
		return forShells(offered), cobra.ShellCompDirectiveNoFileComp
	})
}

// completeArgument offers values of an argument by its name in the usage.
func completeArgument(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	_, arguments, _ := strings.Cut(cmd.Use, " ")
	usage := strings.Fields(arguments)
	if slices.ContainsFunc(usage, func(word string) bool { return strings.Trim(word, "[].") == "<filter>" }) {
		return completeTerm(cmd, typed)
	}
	if len(args) >= len(usage) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeListed(cmd, usage[len(args)])
}

// completeListed offers the values of an argument that the API lists.
func completeListed(cmd *cobra.Command, argument string) ([]string, cobra.ShellCompDirective) {
	listing, ok := listings[argument]
	if !ok {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var offered []completion
	for _, item := range askForCompletion(cmd, http.MethodGet, listing.path, nil).Get(listing.items).Array() {
		offered = append(offered, completion{item.Get(listing.name).String(), item.Get(listing.note).String()})
	}
	return forShells(offered), cobra.ShellCompDirectiveNoFileComp
}

// completeTerm offers the fields of a filter, and after `=` the most frequent values of one.
func completeTerm(cmd *cobra.Command, typed string) ([]string, cobra.ShellCompDirective) {
	var offered []completion
	field, _, hasValue := strings.Cut(typed, "=")
	if !hasValue {
		for _, name := range headings(allColumns) {
			offered = append(offered, completion{value: name + "="})
		}
		return forShells(offered), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	found := askForCompletion(cmd, http.MethodPost, "/v1/facets/query", map[string]any{"filter": json.RawMessage(storage.AppendJSON(nil, storage.All{})), "fields": []string{field}})
	for _, value := range found.Get("fields.0.values.#.value").Array() {
		offered = append(offered, completion{value: field + "=" + value.String()})
	}
	return forShells(offered), cobra.ShellCompDirectiveNoFileComp
}

// askForCompletion returns the data of an answer, and nothing if there is none soon.
func askForCompletion(cmd *cobra.Command, method, path string, body any) gjson.Result {
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	c, err := newClient(cmd)
	if err != nil {
		return gjson.Result{}
	}
	data, _ := c.ask(ctx, method, path, body)
	return data
}
