package llmcommand

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/question"
	"github.com/weirhq/weir/storage"
)

// litellmKeys is the table LiteLLM_VerificationToken of LiteLLM.
const litellmKeys = "litellm-keys"

// litellmSecrets are the fields with the hash of a key and the end of its secret.
var litellmSecrets = []string{"token", "key_name"}

// litellmIgnored are the fields that are not imported, because a key of Weir has no use for them.
var litellmIgnored = append([]string{
	"key_alias", "spend", "model_spend", "budget_reset_at", "soft_budget_cooldown",
	"created_at", "created_by", "updated_at", "updated_by", "last_active", "team_id",
}, litellmSecrets...)

// litellmBounds are fields that bound a key at LiteLLM, and why no key here has the bound.
var litellmBounds = map[string]string{
	"budget_id":             "the limits are in LiteLLM_BudgetTable: have the export take max_budget, rpm_limit and tpm_limit from there, and leave budget_id out",
	"max_parallel_requests": "a key of Weir has no such bound; leave the column out, and set rpm_limit, to import the key without it",
	"model_max_budget":      "a key of Weir has no budget for each model; leave the column out, and set a budget with a filter on the model afterwards",
}

// importedKeys makes a key of each row.
type importedKeys struct {
	importCounts
	client       *client
	secrets      *os.File // nil in a dry run
	existing     map[string]bool
	taken        map[string]bool // names of rows of this import
	new, already int64
}

// keyLimit is a budget or a limit of a key.
type keyLimit struct{ what, quantity, limit, window string }

// keyRow is a key in an export.
type keyRow struct {
	name   string
	body   map[string]any // as the API takes it, without `disabled`
	limits []keyLimit
	ended  bool
	off    bool // the key opens nothing
}

// importKeys takes the keys of files.
func importKeys(ctx context.Context, cmd *cobra.Command, of importCounts, c *client, files []string) (err error) {
	i := &importedKeys{importCounts: of, client: c, existing: make(map[string]bool), taken: make(map[string]bool)}
	i.noun, i.secretFields = "keys", litellmSecrets
	if err := i.list(ctx); err != nil {
		return err
	}
	if !c.dry() {
		name, _ := cmd.Flags().GetString("secrets")
		if name == "" {
			return misused("--secrets names a new file for the secrets of the keys, which are told once")
		}
		if i.secrets, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, i.secrets.Close()) }()
	}
	err = i.files(files, func(object gjson.Result, _ origin) (*refusal, error) { return i.row(ctx, object) })
	i.report(cmd.OutOrStdout())
	return i.failure(err)
}

// list learns the names of the keys that there are.
func (i *importedKeys) list(ctx context.Context) error {
	for after, more := "", true; more; more = after != "" {
		page, err := i.client.ask(ctx, http.MethodGet, "/v1/keys?limit=200&after="+url.QueryEscape(after), nil)
		if err != nil {
			return err
		}
		for _, k := range page.Get("items").Array() {
			i.existing[k.Get("name").Str] = true
		}
		after = page.Get("next").Str
	}
	return nil
}

func (i *importedKeys) row(ctx context.Context, object gjson.Result) (*refusal, error) {
	r := newRow(object, sameName)
	k, refused := litellmKey(r)
	switch {
	case refused != nil:
		return refused, nil
	case i.taken[k.name]:
		return &refusal{reason: "another row has the same name", detail: k.name}, nil
	case k.ended:
		i.skipped["a key that has ended"]++
		return nil, nil
	case i.existing[k.name]:
		i.already++
		i.taken[k.name] = true
		return nil, nil
	}
	i.count(r, litellmIgnored)
	if !i.client.dry() {
		if refused, err := i.make(ctx, k); refused != nil || err != nil {
			return refused, err
		}
	}
	i.taken[k.name] = true
	i.new++
	return nil, nil
}

// make creates a key. The key opens nothing before its limits hold and its secret is written.
func (i *importedKeys) make(ctx context.Context, k keyRow) (*refusal, error) {
	k.body["disabled"] = true
	created, err := i.client.ask(ctx, http.MethodPost, "/v1/keys", k.body)
	if err != nil {
		return refusedBySite(err)
	}
	id := created.Get("id").Str
	for _, l := range k.limits {
		_, err := i.client.ask(ctx, http.MethodPost, "/v1/budgets", map[string]any{
			"name": l.nameOf(k.name, id), "quantity": l.quantity, "limit": l.limit, "window": l.window,
			"filter": json.RawMessage(storage.AppendJSON(nil, &storage.Leaf{Field: question.Field("key_id"), Op: storage.Equals, Text: id})),
		})
		if err != nil {
			_, ended := i.client.ask(ctx, http.MethodDelete, "/v1/keys/"+id, nil)
			if ended != nil {
				return nil, fmt.Errorf("%w; and the key %s, which is disabled, is not deleted: %w", err, id, ended)
			}
			return refusedBySite(err)
		}
	}
	line, err := json.Marshal(map[string]string{"id": id, "name": k.name, "secret": created.Get("secret").Str})
	if err == nil {
		_, err = i.secrets.Write(append(line, '\n'))
	}
	if err == nil {
		err = i.secrets.Sync()
	}
	if err == nil && !k.off {
		_, err = i.client.ask(ctx, http.MethodPatch, "/v1/keys/"+id, map[string]any{"disabled": false})
	}
	if err != nil {
		return nil, fmt.Errorf("%w; the key %s stays disabled: enable or delete it", err, id)
	}
	return nil, nil
}

// nameOf is the name of the budget, which no other key has.
func (l keyLimit) nameOf(key, id string) string {
	const maxName = 100 // bytes of a name
	if name := fmt.Sprintf("%s (%s): %s", key, id[:12], l.what); len(name) <= maxName {
		return name
	}
	return id + ": " + l.what
}

// refusedBySite makes a refusal of an error that says that the site never takes the key.
func refusedBySite(err error) (*refusal, error) {
	if e, ok := errors.AsType[*statusError](err); ok && (e.status == http.StatusBadRequest || e.status == http.StatusConflict) {
		return &refusal{reason: "the site refuses the key", detail: e.message}, nil
	}
	return nil, err
}

func (i *importedKeys) report(w io.Writer) {
	if i.client.dry() {
		fmt.Fprintln(w, "Nothing was imported. Without --dry-run, unless the site refuses a key:")
	}
	fmt.Fprintf(w, "%s rows: %s new keys at %s\n", formatCount(i.rows), formatCount(i.new), i.client.address)
	if i.already > 0 {
		fmt.Fprintf(w, "%s already there: a key has the name\n", formatCount(i.already))
	}
	i.details(w)
}

// litellmKey reads a row of LiteLLM's table of keys, joined with the alias and the models of
// its team, and never the hash of the key.
func litellmKey(r *row) (k keyRow, refused *refusal) {
	created, owner := r.text("created_at"), r.text("user_id")
	k.name = cmp.Or(r.text("key_alias"), strings.TrimSpace("key of "+cmp.Or(owner, r.text("team_id"), "nobody")+" "+created))
	k.off = isOn(r, "blocked")
	k.body = map[string]any{
		"name": k.name, "owner": owner, "project": cmp.Or(r.text("team_alias"), r.text("team_id")), "scopes": []string{"gateway", "log"},
	}
	if ends := r.time("expires"); !ends.IsZero() {
		k.body["expires_at"] = ends
		k.ended = time.Now().After(ends)
	}
	models, refused := litellmModels(r)
	if refused == nil {
		k.body["models"] = models
		k.limits, refused = litellmLimits(r)
	}
	if routes := textsOf(r, "allowed_routes"); refused == nil && len(routes) > 0 && !slices.Contains(routes, "llm_api_routes") {
		refused = &refusal{reason: "allowed_routes: a key of Weir that calls models has no such bound"}
	}
	for _, field := range slices.Sorted(maps.Keys(litellmBounds)) {
		if refused == nil && !blank(r.get(field)) {
			refused = &refusal{reason: field + ": " + litellmBounds[field]}
		}
	}
	if refused == nil && len(r.wrong) > 0 { // a bound of the key may be in the value
		for path := range r.wrong {
			refused = &refusal{reason: "the value has another type: " + path}
		}
	}
	return k, refused
}

// litellmModels returns the models that a key may call. A key without models has the models of its team.
func litellmModels(r *row) ([]string, *refusal) {
	models, team := textsOf(r, "models"), textsOf(r, "team_models")
	if len(models) == 0 || slices.Contains(models, "all-team-models") {
		if r.text("team_id") != "" && !r.get("team_models").Exists() {
			return nil, &refusal{reason: "its models are those of its team, which the export does not have: add team_models"}
		}
		models = team
	}
	switch {
	case slices.Contains(models, "no-default-models"):
		return nil, &refusal{reason: "no-default-models: its models depend on who calls"}
	case slices.Contains(models, "all-proxy-models"), slices.Contains(models, "*"):
		return []string{}, nil
	}
	return models, nil
}

// litellmLimits returns the budget and the limits of a key.
func litellmLimits(r *row) (all []keyLimit, refused *refusal) {
	if limit, ok := r.number("max_budget"); ok {
		window, refused := litellmWindow(r.text("budget_duration"))
		if refused == nil && limit <= 0 {
			refused = &refusal{reason: "max_budget: an amount above 0 is expected"}
		}
		if refused != nil {
			return nil, refused
		}
		all = append(all, keyLimit{"budget", "usd", strconv.FormatFloat(limit, 'f', -1, 64), window})
	}
	for _, l := range []struct{ field, quantity string }{{"rpm_limit", "requests"}, {"tpm_limit", "tokens"}} {
		n, ok := r.count(l.field)
		switch {
		case ok && n == 0:
			return nil, &refusal{reason: l.field + ": a number above 0 is expected"}
		case ok:
			all = append(all, keyLimit{l.quantity + " a minute", l.quantity, strconv.FormatInt(n, 10), "1m"})
		}
	}
	return all, nil
}

// litellmWindow returns the window for a duration after which LiteLLM resets a budget, such as `30d`.
func litellmWindow(duration string) (string, *refusal) {
	weeks, ok := strings.CutSuffix(duration, "w")
	n, err := strconv.Atoi(weeks)
	switch {
	case duration == "":
		return "total", nil
	case duration == "1mo":
		return "month", nil
	case ok && err == nil:
		return strconv.Itoa(7*n) + "d", nil
	case strings.HasSuffix(duration, "mo"):
		return "", &refusal{reason: "budget_duration: there is no window of several months", detail: duration}
	}
	return duration, nil // the site checks the duration
}

// isOn reads a truth value, which Postgres writes as t or f in CSV.
func isOn(r *row, path string) bool {
	switch v := r.get(path); strings.ToLower(v.String()) {
	case "t":
		return true
	case "f":
		return false
	}
	return r.flag(path)
}

// textsOf reads a list of texts, which Postgres writes in CSV as `{a,"b c"}`.
func textsOf(r *row, path string) []string {
	v := r.get(path)
	inner, ok := strings.CutPrefix(v.String(), "{")
	if v.Type != gjson.String || !ok || !strings.HasSuffix(inner, "}") {
		if v.IsObject() && blank(v) { // an empty list of Postgres's
			return []string{}
		}
		return append([]string{}, texts(r.list(path))...)
	}
	var all []string
	var one strings.Builder
	quoted, escaped := false, false
	for _, c := range strings.TrimSuffix(inner, "}") {
		switch {
		case escaped:
			one.WriteRune(c)
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			all = append(all, one.String())
			one.Reset()
		default:
			one.WriteRune(c)
		}
	}
	return append(all, one.String())
}
