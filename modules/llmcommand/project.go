package llmcommand

import (
	"errors"
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
	cmd.AddCommand(list, members, creators,
		keyAction("create <name>", "Creates a project", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			return change(cmd, http.MethodPost, projectsPath, map[string]any{"name": args[0]}, args[0], "created")
		}),
		keyAction("limit <project> <dollars>", "Sets what a project may spend in a month, or removes the limit: none", cobra.ExactArgs(2), limitProject),
		keyAction("archive <project>", "Archives a project for good: its keys open nothing", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			path, err := projectPath(cmd, args[0])
			if err != nil {
				return err
			}
			return change(cmd, http.MethodPost, path+"/archive", struct{}{}, args[0], "archived")
		}))
}

func limitProject(cmd *cobra.Command, args []string) error {
	path, err := projectPath(cmd, args[0])
	if err != nil {
		return err
	}
	if args[1] == "none" {
		return change(cmd, http.MethodDelete, path+"/spend_limit", nil, args[0], "without a limit")
	}
	dollars, err := strconv.ParseFloat(args[1], 64)
	if cents := int64(dollars*100 + 0.5); err == nil && cents > 0 {
		return change(cmd, http.MethodPost, path+"/spend_limit", map[string]any{"threshold_amount": cents, "currency": "USD", "interval": "month"}, args[0], "limited to $"+args[1]+" a month")
	}
	return fmt.Errorf("expected an amount in dollars such as 500, or none, not %q", args[1])
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
		return fmt.Errorf("--lifetime: expected a duration such as 90d, not %q", text)
	}
	most, _ := cmd.Flags().GetInt("max")
	return change(cmd, http.MethodPost, path+"/key_permissions", map[string]any{"creators": args[1:], "max_keys": most, "max_lifetime_seconds": int64(lifetime / time.Second)},
		args[0], "a project whose "+strings.Join(args[1:], " and ")+" create keys of their own")
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
	return errors.Join(eachObject(cmd, path, out.write), out.flush())
}
