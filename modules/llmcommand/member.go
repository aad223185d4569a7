package llmcommand

import (
	"net/http"

	"github.com/spf13/cobra"
)

var memberColumns = []column{{"id", "id", plain}, {"email", "email", plain}, {"name", "name", plain}, {"role", "role", plain}, {"projects", "projects.data.#.name", plain}}

func memberCommand(cmd *cobra.Command) {
	requireSubcommand(cmd)
	list := keyAction("list", "Shows the members of the organisation", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		return writeObjects(cmd, membersPath, memberColumns)
	})
	addFormatFlags(list, "members", queryFormats...)
	invite := keyAction("invite <email>", "Invites a person, who is a member from the first login on", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		role, _ := cmd.Flags().GetString("role")
		return change(cmd, http.MethodPost, "/v1/organization/invites", map[string]any{"email": args[0], "role": role}, args[0], "invited")
	})
	invite.Flags().String("role", "reader", "reader, or owner, who administers")
	add := keyAction("add <member> <project>", "Adds a member to a project", cobra.ExactArgs(2), func(cmd *cobra.Command, args []string) error {
		path, err := projectPath(cmd, args[1])
		if err != nil {
			return err
		}
		role, _ := cmd.Flags().GetString("role")
		return change(cmd, http.MethodPost, path+"/users", map[string]any{"email": args[0], "role": role}, args[0], "in "+args[1])
	})
	add.Flags().String("role", "member", "member, or owner, who administers the project")
	cmd.AddCommand(list, invite, add,
		keyAction("role <member> <role>", "Gives a member another role: reader, member, or owner, who administers", cobra.ExactArgs(2), func(cmd *cobra.Command, args []string) error {
			path, err := objectPath(cmd, membersPath, "email", args[0], "member")
			if err != nil {
				return err
			}
			return change(cmd, http.MethodPost, path, map[string]any{"role": args[1]}, args[0], args[1])
		}),
		keyAction("remove <member>", "Removes a member, and ends the member's keys", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			path, err := objectPath(cmd, membersPath, "email", args[0], "member")
			if err != nil {
				return err
			}
			return change(cmd, http.MethodDelete, path, nil, args[0], "removed")
		}))
}
