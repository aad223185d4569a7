package llmcommand

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/llmadmin"
	"github.com/weirhq/weir/storage/control"
)

var keyColumns = []column{
	{"id", "id", plain}, {"name", "name", plain}, {"owner", "owner", plain}, {"project", "project", plain}, {"scopes", "scopes", plain},
	{"created", "created_at", moment}, {"last used", "last_used_at", moment}, {"expires", "expires_at", moment}, {"disabled", "disabled", plain},
}

func keyCommand(cmd *cobra.Command) {
	requireSubcommand(cmd)
	list := keyAction("list", "Shows the keys of the organisation", cobra.NoArgs, listKeys)
	addFormatFlags(list, "keys", queryFormats...)
	list.Flags().String("project", "", "Show the keys of one project")

	show := keyAction("show <id>", "Shows all settings of a key, and when its secrets end", cobra.ExactArgs(1), showKey)
	addFormatFlags(show, "keys", queryFormats...)

	create := keyAction("create <name>", "Creates a key, and shows its secret once", cobra.ExactArgs(1), createKey)
	create.Flags().StringSlice("scopes", []string{"gateway", "log"}, "What the key allows: "+strings.Join(access.Scopes, ", "))
	addSettingFlags(create)

	update := keyAction("update <id>", "Changes what a key may do", cobra.ExactArgs(1), updateKey)
	update.Flags().String("name", "", "Another name")
	update.Flags().StringSlice("scopes", nil, "What the key allows: "+strings.Join(access.Scopes, ", "))
	addSettingFlags(update)

	rotate := keyAction("rotate <id>", "Gives a key another secret, and shows it once", cobra.ExactArgs(1), rotateKey)
	rotate.Flags().Duration("overlap", 24*time.Hour, "How long the old secret opens the key, too")

	admin := &cobra.Command{Use: "admin", Short: "Creates a key that administers, on the machine of Weir, and shows its secret once", Args: cobra.NoArgs, RunE: createAdminKey}
	addAdminAddress(admin)
	admin.Flags().String("org", "", "The organisation that the key administers (default: default)")

	remove := keyAction("delete <id>", "Deletes a key, with the keys that it created", cobra.ExactArgs(1), deleteKey)
	for _, own := range []*cobra.Command{list, create, rotate, remove} {
		own.Flags().Bool("mine", false, "Keys of your own, which your key or login creates where a project allows it (weir project keys)")
	}

	importRows := keyAction("import <file.csv>", "Creates a key for each row of a CSV file, and writes the rows with their ids and secrets", cobra.ExactArgs(1), importKeyRows)
	importRows.Flags().String("secrets", "", "A new file for the ids and secrets, which you alone can read (default: standard output)")
	cmd.AddCommand(list, show, importRows,
		create, admin, update, rotate,
		keyAction("disable <id>", "Disables a key", cobra.ExactArgs(1), setDisabled(true)),
		keyAction("enable <id>", "Enables a disabled key", cobra.ExactArgs(1), setDisabled(false)), remove)
}

func keyAction(use, short string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: args, RunE: run}
	addClientFlags(cmd)
	return cmd
}

// settingFlags are the settings of a key, as rows name them. Flags have - in place of _.
var settingFlags = []string{"name", "scopes", "owner", "owner_id", "project", "user", "models", "providers", "properties", "trust", "mask", "expires"}

func addSettingFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.String("owner", "", "Who answers for the key")
	f.String("owner-id", "", "The id of the service account, the member or the key that owns the key, and takes it along when it ends")
	f.String("project", "", "The project of the key's calls")
	f.String("user", "", "The user of the key's calls, whatever they say")
	f.StringSlice("models", nil, "The models that the key may call, such as gpt-5-mini or anthropic/* (default: all)")
	f.StringSlice("providers", nil, "The providers that the key may call (default: all)")
	f.StringSlice("properties", nil, "The properties of the key's calls, whatever they say, such as Team=search,Environment=prod")
	f.StringSlice("trust", nil, "What callers of the key are trusted to say of their calls: "+strings.Join(control.Claims, ", ")+" (default: nothing)")
	f.StringSlice("mask", nil, "The kinds of data that are masked in what is stored of the key's calls: "+strings.Join(mask.Kinds, ", ")+" (default: as the organisation's)")
	f.String("expires", "", "When the key ends: a time, or a duration from now such as 90d")
}

// settings returns the settings that flags name, and the default scopes of a new key.
func settings(cmd *cobra.Command) (map[string]any, error) {
	body := make(map[string]any)
	for _, name := range settingFlags {
		flag := strings.ReplaceAll(name, "_", "-")
		f := cmd.Flags().Lookup(flag)
		if f == nil || !f.Changed && (f.DefValue == "" || f.DefValue == "[]") {
			continue
		}
		if list, err := cmd.Flags().GetStringSlice(flag); err == nil {
			body[name] = list
		} else {
			body[name] = f.Value.String()
		}
	}
	return body, parseSettings(body)
}

// parseSettings reads the settings of a key that the API has in another form than flags and rows.
func parseSettings(body map[string]any) error {
	if kinds, ok := body["mask"].([]string); ok {
		rules := []any{}
		if len(kinds) > 0 {
			rules = append(rules, map[string]any{"kinds": kinds})
		}
		body["mask"] = rules
	}
	if pairs, ok := body["properties"].([]string); ok {
		properties := make(map[string]string, len(pairs))
		for _, pair := range pairs {
			name, value, found := strings.Cut(pair, "=")
			if !found || name == "" {
				return fmt.Errorf("properties: expected a name and a value such as Team=search, not %q", pair)
			}
			properties[name] = value
		}
		body["properties"] = properties
	}
	if text, ok := body["expires"].(string); ok {
		at, err := expiry(text, time.Now())
		if err != nil {
			return err
		}
		delete(body, "expires")
		body["expires_at"] = at
	}
	return nil
}

// expiry reads a time, or a duration from now.
func expiry(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if lifetime, err := caddy.ParseDuration(text); err == nil && lifetime > 0 {
		return now.Add(lifetime), nil
	}
	return time.Time{}, fmt.Errorf("expires: expected a time such as 2027-01-31T12:00:00Z, or a duration such as 90d, not %q", text)
}

// keys asks the endpoint of keys, and returns its data. What may be wrong goes to stderr.
func keys(cmd *cobra.Command, method, path string, body any) (gjson.Result, error) {
	c, err := newClient(cmd)
	if err != nil {
		return gjson.Result{}, err
	}
	data, err := c.ask(cmd.Context(), method, path, body)
	for _, warning := range data.Get("warnings").Array() {
		fmt.Fprintf(cmd.ErrOrStderr(), "Warning: %s\n", printable(warning.Str))
	}
	return data, err
}

// keysPath is where keys are: those of the organisation, or with --mine those of the caller.
func keysPath(cmd *cobra.Command) string {
	if mine, _ := cmd.Flags().GetBool("mine"); mine {
		return "/v1/key/keys"
	}
	return "/v1/keys"
}

func keyPath(cmd *cobra.Command, id string) string { return keysPath(cmd) + "/" + url.PathEscape(id) }

func listKeys(cmd *cobra.Command, _ []string) error {
	project, _ := cmd.Flags().GetString("project")
	query := url.Values{"limit": {"200"}, "project": {project}}
	if mine, _ := cmd.Flags().GetBool("mine"); mine { // they are one page
		query = nil
	}
	return listPages(cmd, keysPath(cmd)+"?"+query.Encode(), "after", keyColumns)
}

// listPages writes all pages of a list.
func listPages(cmd *cobra.Command, path, next string, columns []column) error {
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, columns, queryFormats...)
	if err != nil {
		return err
	}
	if err := eachItem(cmd, path, next, out.write); err != nil {
		return err
	}
	return out.flush()
}

// eachItem calls f with each item of a list. Each page names the next one, for the option next.
func eachItem(cmd *cobra.Command, path, next string, f func(gjson.Result) error) error {
	for page := path; page != ""; {
		data, err := keys(cmd, http.MethodGet, page, nil)
		if err != nil {
			return err
		}
		for _, item := range data.Get("items").Array() {
			if err := f(item); err != nil {
				return err
			}
		}
		page = ""
		if id := data.Get("next").Str; id != "" {
			page = path + "&" + next + "=" + url.QueryEscape(id)
		}
	}
	return nil
}

var allKeyColumns = append(slices.Clip(keyColumns),
	column{"user", "user", plain}, column{"models", "models", plain}, column{"providers", "providers", plain}, column{"properties", "properties", plain},
	column{"trust", "trust", plain}, column{"masks", "mask.#.kinds", plain}, column{"secrets end with", "secrets.#.last4", plain}, column{"secrets end", "secrets.#.ends_at", plain})

func showKey(cmd *cobra.Command, args []string) error {
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, allKeyColumns, queryFormats...)
	if err != nil {
		return err
	}
	k, err := keys(cmd, http.MethodGet, keyPath(cmd, args[0]), nil)
	if err != nil {
		return err
	}
	return writeRows(out, []gjson.Result{k})
}

func createKey(cmd *cobra.Command, args []string) error {
	body, err := settings(cmd)
	if err != nil {
		return err
	}
	body["name"] = args[0]
	if mine, _ := cmd.Flags().GetBool("mine"); mine && !cmd.Flags().Changed("scopes") {
		delete(body, "scopes") // the server gives those that the caller has
	}
	return showSecret(cmd, keysPath(cmd), body)
}

func rotateKey(cmd *cobra.Command, args []string) error {
	overlap, _ := cmd.Flags().GetDuration("overlap")
	return showSecret(cmd, keyPath(cmd, args[0])+"/rotate", map[string]any{"overlap_seconds": int64(overlap / time.Second)})
}

// showSecret asks for a key with a new secret, and writes the secret on a line of its own, so
// that a script can take it. The id and the name of the key go to stderr.
func showSecret(cmd *cobra.Command, path string, body any) error {
	k, err := keys(cmd, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	return writeSecret(cmd, k.Get("id").Str, k.Get("name").Str, k.Get("secret").Str)
}

func writeSecret(cmd *cobra.Command, id, name, secret string) error {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s (%s): this is the only time that its secret is shown.\n", printable(id), printable(name))
	_, err := fmt.Fprintln(cmd.OutOrStdout(), secret)
	return err
}

// createAdminKey needs no key: whoever reaches the admin endpoint rules the process.
func createAdminKey(cmd *cobra.Command, _ []string) error {
	org, _ := cmd.Flags().GetString("org")
	var k llmadmin.AdminKey
	if _, err := callAdminJSON(cmd, http.MethodPost, "/llm/keys/admin", llmadmin.AdminKeyRequest{Org: org}, &k); err != nil {
		return err
	}
	return writeSecret(cmd, k.ID, k.Name, k.Secret)
}

func updateKey(cmd *cobra.Command, args []string) error {
	body, err := settings(cmd)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return misused("name what shall change, as in --models gpt-5-mini")
	}
	return change(cmd, http.MethodPatch, keyPath(cmd, args[0]), body, args[0], "changed")
}

func setDisabled(disabled bool) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		done := map[bool]string{true: "disabled", false: "enabled"}[disabled]
		return change(cmd, http.MethodPatch, keyPath(cmd, args[0]), map[string]any{"disabled": disabled}, args[0], done)
	}
}

func deleteKey(cmd *cobra.Command, args []string) error {
	return change(cmd, http.MethodDelete, keyPath(cmd, args[0]), nil, args[0], "deleted")
}

// change asks for a change, and says what became of the key or budget.
func change(cmd *cobra.Command, method, path string, body any, name, done string) error {
	if _, err := keys(cmd, method, path, body); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is %s\n", name, done)
	return err
}

var auditColumns = []column{
	{"time", "at", moment}, {"action", "action", plain}, {"object", "object", plain}, {"name", "after.name", plain}, {"by", "actor.key", plain}, {"from", "actor.address", plain},
}

func auditCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	addFormatFlags(cmd, "events", queryFormats...)
	cmd.Flags().String("of", "", "Show what was done to one object, or to one request")
	cmd.Flags().Bool("reads", false, "Show who read content of calls that others have made, in place of changes")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		id, _ := cmd.Flags().GetString("of")
		reads, _ := cmd.Flags().GetBool("reads")
		return listPages(cmd, fmt.Sprintf("/v1/audit?limit=200&reads=%t&key=%s", reads, url.QueryEscape(id)), "before", auditColumns)
	}
}
