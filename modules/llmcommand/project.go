package llmcommand

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
)

const projectsPath, membersPath = "/v1/organization/projects", "/v1/organization/users"

var projectColumns = []column{{"id", "id", plain}, {"name", "name", plain}, {"state", "status", plain}}

func projectCommand(cmd *cobra.Command) {
	requireSubcommand(cmd)
	list := keyAction("list", "Shows the projects of the organisation", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		return writeObjects(cmd, projectsPath, projectColumns)
	})
	addFormatFlags(list, "projects", queryFormats...)
	members := keyAction("members <project>", "Shows the members of a project", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		path, err := projectPath(cmd, args[0])
		if err != nil {
			return err
		}
		return writeObjects(cmd, path+"/users", memberColumns)
	})
	addFormatFlags(members, "members", queryFormats...)
	creators := keyAction("keys <project> <who>...", "Allows owners, members or keys of a project to create keys of their own (weir key create --mine), or none", cobra.MinimumNArgs(2), allowKeys)
	creators.Flags().Int("max", 10, "How many keys each of them has at most")
	creators.Flags().String("lifetime", "90d", "How long such a key lives at most")
	create := keyAction("create <name>...", "Creates projects", cobra.MinimumNArgs(1), createProjects)
	create.Flags().String("limit", "none", "What each of them may spend in a month, in dollars")
	create.Flags().StringSlice("keys", nil, "Who creates keys of their own in them, as weir project keys says")
	cmd.AddCommand(list, members, creators, create,
		keyAction("rename <project> <name>", "Gives a project another name; the records keep the one that they have", cobra.ExactArgs(2), func(cmd *cobra.Command, args []string) error {
			path, err := projectPath(cmd, args[0])
			if err != nil {
				return err
			}
			return change(cmd, http.MethodPost, path, map[string]any{"name": args[1]}, args[0], "now "+args[1])
		}),
		keyAction("models <project> <allow|deny|all> [<model>...]", "Says which models a project may call, or may not, such as gpt-5-mini or anthropic/*", cobra.MinimumNArgs(2), setProjectModels),
		keyAction("limit <project> <dollars>", "Sets what a project may spend in a month, or removes the limit: none", cobra.ExactArgs(2), limitProject),
		keyAction("archive <project>", "Archives a project for good: its keys open nothing", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			path, err := projectPath(cmd, args[0])
			if err != nil {
				return err
			}
			return change(cmd, http.MethodPost, path+"/archive", struct{}{}, args[0], "archived")
		}))
}

func createProjects(cmd *cobra.Command, args []string) error {
	text, _ := cmd.Flags().GetString("limit")
	limit, err := spendLimit(text)
	if err != nil {
		return err
	}
	who, _ := cmd.Flags().GetStringSlice("keys")
	for _, name := range args {
		if err := change(cmd, http.MethodPost, projectsPath, map[string]any{"name": name}, name, "created"); err != nil {
			return err
		}
		if limit == nil && len(who) == 0 {
			continue
		}
		path, err := projectPath(cmd, name)
		if err == nil && limit != nil {
			_, err = keys(cmd, http.MethodPost, path+"/spend_limit", limit)
		}
		if err == nil && len(who) > 0 {
			_, err = keys(cmd, http.MethodPost, path+"/key_permissions", map[string]any{"creators": who})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// spendLimit is what the API takes as a limit in dollars a month, nil for none.
func spendLimit(text string) (map[string]any, error) {
	if text == "none" {
		return nil, nil
	}
	dollars, err := strconv.ParseFloat(text, 64)
	if cents := int64(dollars*100 + 0.5); err == nil && cents > 0 {
		return map[string]any{"threshold_amount": cents, "currency": "USD", "interval": "month"}, nil
	}
	return nil, misused("expected an amount in dollars such as 500, or none, not %q", text)
}

func limitProject(cmd *cobra.Command, args []string) error {
	limit, err := spendLimit(args[1])
	if err != nil {
		return err
	}
	path, err := projectPath(cmd, args[0])
	if err != nil {
		return err
	}
	if limit == nil {
		return change(cmd, http.MethodDelete, path+"/spend_limit", nil, args[0], "without a limit")
	}
	return change(cmd, http.MethodPost, path+"/spend_limit", limit, args[0], "limited to $"+args[1]+" a month")
}

func allowKeys(cmd *cobra.Command, args []string) error {
	path, err := projectPath(cmd, args[0])
	if err != nil {
		return err
	}
	if args[1] == "none" {
		return change(cmd, http.MethodDelete, path+"/key_permissions", nil, args[0], "without new keys of one's own; those that exist stay")
	}
	text, _ := cmd.Flags().GetString("lifetime")
	lifetime, err := caddy.ParseDuration(text)
	if err != nil {
		return misused("--lifetime: expected a duration such as 90d, not %q", text)
	}
	maxKeys, _ := cmd.Flags().GetInt("max")
	return change(cmd, http.MethodPost, path+"/key_permissions", map[string]any{"creators": args[1:], "max_keys": maxKeys, "max_lifetime_seconds": int64(lifetime / time.Second)},
		args[0], "a project whose "+strings.Join(args[1:], " and ")+" create keys of their own")
}

func setProjectModels(cmd *cobra.Command, args []string) error {
	mode, models := args[1], args[2:]
	if mode != "allow" && mode != "deny" && mode != "all" || (mode == "all") != (len(models) == 0) {
		return misused("expected allow or deny and the names of models, or all")
	}
	path, err := projectPath(cmd, args[0])
	if err != nil {
		return err
	}
	if path += "/model_permissions"; mode == "all" {
		return change(cmd, http.MethodDelete, path, nil, args[0], "a project that may call all models")
	}
	return change(cmd, http.MethodPost, path, map[string]any{"mode": mode + "_list", "model_ids": models}, args[0], "a project with a list of models")
}

// projectPath returns the path of the project with a name or an id.
func projectPath(cmd *cobra.Command, name string) (string, error) {
	return objectPath(cmd, projectsPath, "name", name, "project")
}

// objectPath returns the path of the object of a list that has a name, or an id.
func objectPath(cmd *cobra.Command, list, field, name, kind string) (string, error) {
	path := ""
	err := eachObject(cmd, list, func(o gjson.Result) error {
		if o.Get(field).Str == name || o.Get("id").Str == name {
			path = list + "/" + url.PathEscape(o.Get("id").Str)
		}
		return nil
	})
	if err == nil && path == "" {
		err = fmt.Errorf("there is no %s %q: weir %[1]s list shows all", kind, name)
	}
	return path, err
}

// eachObject calls f with each object of a list in the format of OpenAI's administration.
func eachObject(cmd *cobra.Command, path string, f func(gjson.Result) error) error {
	const page = 100
	for after := ""; ; {
		data, err := keys(cmd, http.MethodGet, fmt.Sprintf("%s?limit=%d&after=%s", path, page, url.QueryEscape(after)), nil)
		if err != nil {
			return err
		}
		objects := data.Array()
		for _, o := range objects {
			if err := f(o); err != nil {
				return err
			}
			after = o.Get("id").Str
		}
		if len(objects) < page {
			return nil
		}
	}
}

// writeObjects writes such a list.
func writeObjects(cmd *cobra.Command, path string, columns []column) error {
	out, err := outputOf(cmd, cmd.OutOrStdout(), false, columns, queryFormats...)
	if err != nil {
		return err
	}
	if err := eachObject(cmd, path, out.write); err != nil {
		return err
	}
	return out.flush()
}
